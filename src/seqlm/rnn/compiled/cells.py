"""What each kind of cell does, element by element: the part in which RNN, GRU and LSTM differ.

X_t is the input of the step, H_{t-1} the state before it, and * the elementwise product. Each gate has a product with
the input and one with the state, each with its bias: A = X_t W_x + b_x and S = H_{t-1} W_h + b_h.

RNN, with the activation tanh or relu:

    H_t = activation(A + S)

LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000):

    I, F, O = sigmoid(A + S)      G = tanh(A + S)
    C_t = F * C_{t-1} + I * G     H_t = O * tanh(C_t)

GRU (Cho et al. 2014, with the reset gate after the product, as in the framework):

    R, Z = sigmoid(A + S)         N = tanh(A + R * S)
    H_t = (1 - Z) * N + Z * H_{t-1}

A row of *gates* holds these sums in blocks of h columns. Products with the input fill blocks from the first on,
products with the state before fill blocks from ``first_state_block`` on; most blocks get both. :func:`activate`
replaces the sums by activations and writes the state after the step. :func:`differentiate` replaces the activations by
the gradients by the sums; the derivatives of sigmoid and tanh are y (1 - y) and 1 - y^2.

Every loop covers one row of a panel and changes two arrays at most; otherwise it would not become vector instructions.
The numbers that fill up a panel are zeros, and stay so.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.compiling import jit_inline, jit_internal
from seqlm.rnn.compiled.elementary import sigmoid, tanh
from seqlm.rnn.compiled.tiles import WIDTH, Panels

_ZERO, _ONE = np.float32(0), np.float32(1)


class CellStep(NamedTuple):
    """Where the numbers of one step are, a row for each batch row."""

    gates: Panels
    row: int
    states: Panels
    memories: Panels
    """The second part of the state, of an LSTM only."""
    before: int
    """First row of the states and memories before the step."""
    after: int
    num_rows: int


class StepGradients(NamedTuple):
    """Where the gradients of one step are."""

    states: Panels
    """Gradients by the states after the step."""
    row: int
    carry: Panels
    """The gradients that reach the state or memory before a step past all products: those of the next step come in,
    those of this step go out."""
    batch_row: int


class CellLayout(NamedTuple):
    """A kind of cell as the loops see it."""

    number: int
    """By which :func:`activate` and :func:`differentiate` know it."""
    num_blocks: int
    input_blocks: NDArray[np.int64]
    """The block of each gate's product with the input, in the order in which the weights hold the gates."""
    state_blocks: NDArray[np.int64]
    """The same for the state, counted from ``first_state_block``."""
    first_state_block: int
    has_memory: bool


_TANH, _RELU, _GRU, _LSTM = range(4)
LAYOUTS = {
    "tanh": CellLayout(_TANH, 1, np.array([0]), np.array([0]), 0, False),
    "relu": CellLayout(_RELU, 1, np.array([0]), np.array([0]), 0, False),
    "gru": CellLayout(_GRU, 4, np.array([1, 2, 0]), np.array([0, 1, 2]), 1, False),
    "lstm": CellLayout(_LSTM, 4, np.arange(4), np.arange(4), 0, True),
}
"""The kinds of cells by name; an RNN by its activation."""


@jit_internal
def _apply_sigmoid(values: NDArray[np.float32]) -> None:
    for k in range(WIDTH):
        values[k] = sigmoid(values[k])


@jit_internal
def _activate_rnn(step: CellStep, p: int, r: int, is_relu: bool) -> None:
    total, state = step.gates[p, step.row + r], step.states[p, step.after + r]
    if is_relu:
        for k in range(WIDTH):
            state[k] = _ZERO if total[k] < 0 else total[k]  # NaN stays NaN
    else:
        for k in range(WIDTH):
            state[k] = tanh(total[k])


@jit_internal
def _differentiate_rnn(step: CellStep, gradients: StepGradients, p: int, r: int, is_relu: bool) -> None:
    gate, state = step.gates[p, step.row + r], step.states[p, step.after + r]
    d_state = gradients.states[p, gradients.row + r]
    if is_relu:
        for k in range(WIDTH):
            gate[k] = d_state[k] * (_ONE if state[k] > 0 else _ZERO)
    else:
        for k in range(WIDTH):
            gate[k] = d_state[k] * (_ONE - state[k] * state[k])


@jit_inline
def _gates(step: CellStep, p: int, r: int) -> tuple[Any, Any, Any, Any]:
    """Return the parts of a row of four gates that are in panel p of their blocks."""
    gates, panels, row = step.gates, step.states.shape[0], step.row + r
    return gates[p, row], gates[panels + p, row], gates[2 * panels + p, row], gates[3 * panels + p, row]


# Blocks of a GRU: the candidate's part from the input, reset, update, the candidate's part from the state.


@jit_internal
def _activate_gru(step: CellStep, p: int, r: int) -> None:
    candidate, reset, update, recurrent = _gates(step, p, r)
    before, after = step.states[p, step.before + r], step.states[p, step.after + r]
    _apply_sigmoid(reset)
    _apply_sigmoid(update)
    for k in range(WIDTH):
        candidate[k] = tanh(candidate[k] + reset[k] * recurrent[k])
    for k in range(WIDTH):
        after[k] = candidate[k] + update[k] * (before[k] - candidate[k])


@jit_internal
def _differentiate_gru(step: CellStep, gradients: StepGradients, p: int, r: int) -> None:
    candidate, reset, update, recurrent = _gates(step, p, r)
    d_state, carry = gradients.states[p, gradients.row + r], gradients.carry[p, gradients.batch_row + r]
    before = step.states[p, step.before + r]
    for k in range(WIDTH):
        d_state[k] += carry[k]
    for k in range(WIDTH):
        carry[k] = d_state[k] * update[k]
    for k in range(WIDTH):
        kept = _ONE - update[k]
        update[k] *= d_state[k] * (before[k] - candidate[k]) * kept
        candidate[k] = d_state[k] * kept * (_ONE - candidate[k] * candidate[k])
    for k in range(WIDTH):
        passed = reset[k]
        reset[k] = candidate[k] * recurrent[k] * passed * (_ONE - passed)
        recurrent[k] = candidate[k] * passed


# Blocks of an LSTM: input gate, forget gate, candidate, output gate.


@jit_internal
def _activate_lstm(step: CellStep, p: int, r: int) -> None:
    input_gate, forget_gate, candidate, output_gate = _gates(step, p, r)
    before, after = step.memories[p, step.before + r], step.memories[p, step.after + r]
    state = step.states[p, step.after + r]
    _apply_sigmoid(input_gate)
    _apply_sigmoid(forget_gate)
    for k in range(WIDTH):
        candidate[k] = tanh(candidate[k])
    _apply_sigmoid(output_gate)
    for k in range(WIDTH):
        after[k] = forget_gate[k] * before[k] + input_gate[k] * candidate[k]
    for k in range(WIDTH):
        state[k] = output_gate[k] * tanh(after[k])


@jit_internal
def _differentiate_lstm(step: CellStep, gradients: StepGradients, p: int, r: int) -> None:
    input_gate, forget_gate, candidate, output_gate = _gates(step, p, r)
    before, after = step.memories[p, step.before + r], step.memories[p, step.after + r]
    d_state, carry = gradients.states[p, gradients.row + r], gradients.carry[p, gradients.batch_row + r]
    for k in range(WIDTH):
        squashed = tanh(after[k])
        carry[k] += d_state[k] * output_gate[k] * (_ONE - squashed * squashed)
        output_gate[k] *= d_state[k] * squashed * (_ONE - output_gate[k])
    for k in range(WIDTH):
        gate = input_gate[k]
        input_gate[k] = carry[k] * candidate[k] * gate * (_ONE - gate)
        candidate[k] = carry[k] * gate * (_ONE - candidate[k] * candidate[k])
    for k in range(WIDTH):
        d_memory, gate = carry[k], forget_gate[k]
        carry[k] = d_memory * gate
        forget_gate[k] = d_memory * before[k] * gate * (_ONE - gate)


# The cell is chosen at run time: one function for all kinds is compiled once and cached once.


@jit_internal
def activate(cell: int, step: CellStep) -> None:
    """Replace the sums by activations, and write the state after the step."""
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            if cell == _GRU:
                _activate_gru(step, p, r)
            elif cell == _LSTM:
                _activate_lstm(step, p, r)
            else:
                _activate_rnn(step, p, r, cell == _RELU)


@jit_internal
def differentiate(cell: int, step: CellStep, gradients: StepGradients) -> None:
    """Replace the activations by gradients by the sums."""
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            if cell == _GRU:
                _differentiate_gru(step, gradients, p, r)
            elif cell == _LSTM:
                _differentiate_lstm(step, gradients, p, r)
            else:
                _differentiate_rnn(step, gradients, p, r, cell == _RELU)
