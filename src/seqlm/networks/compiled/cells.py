"""What each kind of cell does, element by element: the part in which RNN, GRU and LSTM differ.

X_t is the input of the step, H_{t-1} the state before it, and * the elementwise product. Each gate
has a product with the input and one with the state, each with its bias: A = X_t W_x + b_x and S =
H_{t-1} W_h + b_h.

RNN, with the activation tanh or relu:

    H_t = activation(A + S)

LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000):

    I, F, O = sigmoid(A + S)      G = tanh(A + S)
    C_t = F * C_{t-1} + I * G     H_t = O * tanh(C_t)

GRU (Cho et al. 2014, with the reset gate after the product, as in the framework):

    R, Z = sigmoid(A + S)         N = tanh(A + R * S)
    H_t = (1 - Z) * N + Z * H_{t-1}

A row of *gates* holds these sums in blocks of h columns. Products with the input fill blocks from
the first on, products with the state before fill blocks from ``first_state_block`` on; most blocks
get both. :func:`activate` replaces the sums with activations and writes the state after the step.
:func:`differentiate` replaces the activations with the gradients with respect to the sums; the
derivatives of sigmoid and tanh are y (1 - y) and 1 - y^2.

Every loop covers all batch rows of a panel and changes two arrays at most. Otherwise it would not
become vector instructions: LLVM unrolls a loop over a single row before it looks for them. The
numbers that fill up a panel are zeros, and stay so.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import jit_inline, jit_internal
from seqlm.core.elementary import sigmoid_single, tanh_single
from seqlm.networks.compiled.tiles import Panels

_ZERO, _ONE = np.float32(0), np.float32(1)


class CellStep(NamedTuple):
    """Where the numbers of one step are, a row for each batch row."""

    gates: Panels
    row: int
    states: Panels
    cell_states: Panels
    """The cell states, of an LSTM only."""
    before: int
    """First row of the states and cell_states before the step."""
    after: int
    num_rows: int


class StepGradients(NamedTuple):
    """Where the gradients of one step are."""

    states: Panels
    """Gradients with respect to the states after the step."""
    row: int
    carry: Panels
    """The gradients that reach the state or memory before a step past all products: those of the
    next step come in, those of this step go out."""
    batch_row: int


class CellLayout(NamedTuple):
    """A kind of cell as the loops see it."""

    kind: int
    """By which :func:`activate` and :func:`differentiate` know it."""
    num_blocks: int
    input_blocks: NDArray[np.int64]
    """The block of each gate's product with the input, in the order in which the weights hold the
    gates."""
    first_state_block: int
    """The products with the state are in blocks from this one on, in the order of the gates."""
    has_memory: bool


_TANH, _RELU, _GRU, _LSTM = range(4)
LAYOUTS = {
    "tanh": CellLayout(_TANH, 1, np.array([0]), 0, False),
    "relu": CellLayout(_RELU, 1, np.array([0]), 0, False),
    "gru": CellLayout(_GRU, 4, np.array([1, 2, 0]), 1, False),
    "lstm": CellLayout(_LSTM, 4, np.arange(4), 0, True),
}
"""The kinds of cells by name; an RNN by its activation."""


@jit_inline
def _rows(panels: Panels, p: int, first: int, num_rows: int) -> Any:
    """Return some rows of panel p, one after another."""
    return panels[p, first : first + num_rows].reshape(-1)


@jit_internal
def _apply_sigmoid(values: NDArray[np.float32]) -> None:
    for k in range(len(values)):
        values[k] = sigmoid_single(values[k])


@jit_internal
def _activate_rnn(step: CellStep, p: int, is_relu: bool) -> None:
    n = step.num_rows
    total, state = _rows(step.gates, p, step.row, n), _rows(step.states, p, step.after, n)
    if is_relu:
        for k in range(len(state)):
            state[k] = _ZERO if total[k] < 0 else total[k]  # NaN stays NaN
    else:
        for k in range(len(state)):
            state[k] = tanh_single(total[k])


@jit_internal
def _differentiate_rnn(step: CellStep, gradients: StepGradients, p: int, is_relu: bool) -> None:
    n = step.num_rows
    gate, state = _rows(step.gates, p, step.row, n), _rows(step.states, p, step.after, n)
    d_state = _rows(gradients.states, p, gradients.row, n)
    if is_relu:
        for k in range(len(gate)):
            gate[k] = d_state[k] * (_ONE if state[k] > 0 else _ZERO)
    else:
        for k in range(len(gate)):
            gate[k] = d_state[k] * (_ONE - state[k] * state[k])


@jit_inline
def _gates(step: CellStep, p: int) -> tuple[Any, Any, Any, Any]:
    """Return the parts of four gates that are in panel p of their blocks."""
    gates, panels, row, n = step.gates, step.states.shape[0], step.row, step.num_rows
    return (
        _rows(gates, p, row, n),
        _rows(gates, panels + p, row, n),
        _rows(gates, 2 * panels + p, row, n),
        _rows(gates, 3 * panels + p, row, n),
    )


# Blocks of a GRU: the candidate's part from the input, reset, update, the candidate's part from the
# state.


@jit_internal
def _activate_gru(step: CellStep, p: int) -> None:
    n = step.num_rows
    candidate, reset, update, recurrent = _gates(step, p)
    before, after = _rows(step.states, p, step.before, n), _rows(step.states, p, step.after, n)
    _apply_sigmoid(reset)
    _apply_sigmoid(update)
    for k in range(len(after)):
        candidate[k] = tanh_single(candidate[k] + reset[k] * recurrent[k])
    for k in range(len(after)):
        after[k] = candidate[k] + update[k] * (before[k] - candidate[k])


@jit_internal
def _differentiate_gru(step: CellStep, gradients: StepGradients, p: int) -> None:
    n = step.num_rows
    candidate, reset, update, recurrent = _gates(step, p)
    d_state, carry = (
        _rows(gradients.states, p, gradients.row, n),
        _rows(gradients.carry, p, gradients.batch_row, n),
    )
    before = _rows(step.states, p, step.before, n)
    for k in range(len(carry)):
        d_state[k] += carry[k]
    for k in range(len(carry)):
        carry[k] = d_state[k] * update[k]
    for k in range(len(carry)):
        kept = _ONE - update[k]
        update[k] *= d_state[k] * (before[k] - candidate[k]) * kept
        candidate[k] = d_state[k] * kept * (_ONE - candidate[k] * candidate[k])
    for k in range(len(carry)):
        passed = reset[k]
        reset[k] = candidate[k] * recurrent[k] * passed * (_ONE - passed)
        recurrent[k] = candidate[k] * passed


# Blocks of an LSTM: input gate, forget gate, candidate, output gate.


@jit_internal
def _activate_lstm(step: CellStep, p: int) -> None:
    n = step.num_rows
    input_gate, forget_gate, candidate, output_gate = _gates(step, p)
    before, after = (
        _rows(step.cell_states, p, step.before, n),
        _rows(step.cell_states, p, step.after, n),
    )
    state = _rows(step.states, p, step.after, n)
    _apply_sigmoid(input_gate)
    _apply_sigmoid(forget_gate)
    for k in range(len(after)):
        candidate[k] = tanh_single(candidate[k])
    _apply_sigmoid(output_gate)
    for k in range(len(after)):
        after[k] = forget_gate[k] * before[k] + input_gate[k] * candidate[k]
    for k in range(len(after)):
        state[k] = output_gate[k] * tanh_single(after[k])


@jit_internal
def _differentiate_lstm(step: CellStep, gradients: StepGradients, p: int) -> None:
    n = step.num_rows
    input_gate, forget_gate, candidate, output_gate = _gates(step, p)
    before, after = (
        _rows(step.cell_states, p, step.before, n),
        _rows(step.cell_states, p, step.after, n),
    )
    d_state, carry = (
        _rows(gradients.states, p, gradients.row, n),
        _rows(gradients.carry, p, gradients.batch_row, n),
    )
    for k in range(len(carry)):
        squashed = tanh_single(after[k])
        carry[k] += d_state[k] * output_gate[k] * (_ONE - squashed * squashed)
        output_gate[k] *= d_state[k] * squashed * (_ONE - output_gate[k])
    for k in range(len(carry)):
        gate = input_gate[k]
        input_gate[k] = carry[k] * candidate[k] * gate * (_ONE - gate)
        candidate[k] = carry[k] * gate * (_ONE - candidate[k] * candidate[k])
    for k in range(len(carry)):
        d_cell, gate = carry[k], forget_gate[k]
        carry[k] = d_cell * gate
        forget_gate[k] = d_cell * before[k] * gate * (_ONE - gate)


# The cell is chosen at run time: one function for all kinds is compiled once and cached once.


@jit_internal
def activate(cell: int, step: CellStep) -> None:
    """Replace the sums by activations, and write the state after the step."""
    for p in range(step.states.shape[0]):
        if cell == _GRU:
            _activate_gru(step, p)
        elif cell == _LSTM:
            _activate_lstm(step, p)
        else:
            _activate_rnn(step, p, cell == _RELU)


@jit_internal
def differentiate(cell: int, step: CellStep, gradients: StepGradients) -> None:
    """Replace the activations with the gradients with respect to the sums."""
    for p in range(step.states.shape[0]):
        if cell == _GRU:
            _differentiate_gru(step, gradients, p)
        elif cell == _LSTM:
            _differentiate_lstm(step, gradients, p)
        else:
            _differentiate_rnn(step, gradients, p, cell == _RELU)
