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

The *gates* of a network are blocks of h columns, and hold these sums. Products with the input fill
blocks from the first on, products with the state before fill blocks from ``first_state_block`` on;
most blocks get both. :func:`activate` replaces the sums with activations and writes the state after
the step. :func:`differentiate` replaces the activations with the gradients with respect to the
sums; the derivatives of sigmoid and tanh are y (1 - y) and 1 - y^2.

A variable of the equations is one vector here, the batch rows one after another. Every loop covers
it and changes two arrays at most: otherwise it would not become vector instructions. The numbers
that fill up a row are zeros in every state, and stay so.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import jit_inline, jit_internal
from seqlm.core.elementary import sigmoid_single, tanh_single
from seqlm.networks.compiled.tiles import BatchRows, Matrix, Stack, Steps, Vector

_ZERO, _ONE = np.float32(0), np.float32(1)
Gates = tuple[Vector, Vector, Vector, Vector]


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
    has_cell_state: bool


_TANH, _RELU, _GRU, _LSTM = range(4)
LAYOUTS = {
    "tanh": CellLayout(_TANH, 1, np.array([0]), 0, False),
    "relu": CellLayout(_RELU, 1, np.array([0]), 0, False),
    "gru": CellLayout(_GRU, 4, np.array([1, 2, 0]), 1, False),
    "lstm": CellLayout(_LSTM, 4, np.arange(4), 0, True),
}
"""The kinds of cells by name; an RNN by its activation."""


@jit_internal
def _apply_sigmoid(values: Vector) -> None:
    for k in range(len(values)):
        values[k] = sigmoid_single(values[k])


@jit_internal
def _activate_rnn(total: Vector, state: Vector, is_relu: bool) -> None:
    if is_relu:
        for k in range(len(state)):
            state[k] = _ZERO if total[k] < 0 else total[k]  # NaN stays NaN
    else:
        for k in range(len(state)):
            state[k] = tanh_single(total[k])


@jit_internal
def _differentiate_rnn(gate: Vector, state: Vector, d_state: Vector, is_relu: bool) -> None:
    if is_relu:
        for k in range(len(gate)):
            gate[k] = d_state[k] * (_ONE if state[k] > 0 else _ZERO)
    else:
        for k in range(len(gate)):
            gate[k] = d_state[k] * (_ONE - state[k] * state[k])


# Blocks of a GRU: the candidate's part from the input, reset, update, the candidate's part from the
# state.


@jit_internal
def _activate_gru(before: Vector, after: Vector, gates: Gates) -> None:
    candidate, reset, update, recurrent = gates
    _apply_sigmoid(reset)
    _apply_sigmoid(update)
    for k in range(len(after)):
        candidate[k] = tanh_single(candidate[k] + reset[k] * recurrent[k])
    for k in range(len(after)):
        after[k] = candidate[k] + update[k] * (before[k] - candidate[k])


@jit_internal
def _differentiate_gru(before: Vector, d_after: Vector, d_before: Vector, gates: Gates) -> None:
    candidate, reset, update, recurrent = gates
    for k in range(len(before)):
        d_after[k] += d_before[k]
    for k in range(len(before)):
        d_before[k] = d_after[k] * update[k]
    for k in range(len(before)):
        kept = _ONE - update[k]
        update[k] *= d_after[k] * (before[k] - candidate[k]) * kept
        candidate[k] = d_after[k] * kept * (_ONE - candidate[k] * candidate[k])
    for k in range(len(before)):
        passed = reset[k]
        reset[k] = candidate[k] * recurrent[k] * passed * (_ONE - passed)
        recurrent[k] = candidate[k] * passed


# Blocks of an LSTM: input gate, forget gate, candidate, output gate.


@jit_internal
def _activate_lstm(before: Vector, after: Vector, state: Vector, gates: Gates) -> None:
    input_gate, forget_gate, candidate, output_gate = gates
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
def _differentiate_lstm(
    before: Vector, after: Vector, d_state: Vector, d_cell: Vector, gates: Gates
) -> None:
    input_gate, forget_gate, candidate, output_gate = gates
    for k in range(len(after)):
        squashed = tanh_single(after[k])
        d_cell[k] += d_state[k] * output_gate[k] * (_ONE - squashed * squashed)
        output_gate[k] *= d_state[k] * squashed * (_ONE - output_gate[k])
    for k in range(len(after)):
        gate = input_gate[k]
        input_gate[k] = d_cell[k] * candidate[k] * gate * (_ONE - gate)
        candidate[k] = d_cell[k] * gate * (_ONE - candidate[k] * candidate[k])
    for k in range(len(after)):
        d_after, gate = d_cell[k], forget_gate[k]
        d_cell[k] = d_after * gate
        forget_gate[k] = d_after * before[k] * gate * (_ONE - gate)


@jit_inline
def _span(steps: Steps, t: int, rows: BatchRows) -> slice:
    """Where the batch rows of step t are among all numbers of the steps."""
    first, columns = t * steps.shape[1], steps.shape[2]
    return slice((first + rows.first) * columns, (first + rows.last) * columns)


@jit_inline
def _four(blocks: Matrix, span: slice) -> Gates:
    return blocks[0, span], blocks[1, span], blocks[2, span], blocks[3, span]


# The cell is chosen at run time: one function for all kinds is compiled once and cached once.


@jit_internal
def activate(
    cell: int, gates: Stack, g: int, states: Steps, cell_states: Steps, t: int, rows: BatchRows
) -> None:
    """Replace the sums of step g of the gates (blocks, S, B, h) by activations, and write the state
    after step t."""
    blocks, now = gates.reshape(len(gates), -1), _span(gates[0], g, rows)
    before, after = _span(states, t, rows), _span(states, t + 1, rows)
    vectors, cell_vectors = states.reshape(-1), cell_states.reshape(-1)
    if cell == _GRU:
        _activate_gru(vectors[before], vectors[after], _four(blocks, now))
    elif cell == _LSTM:
        cell_before, cell_after = cell_vectors[before], cell_vectors[after]
        _activate_lstm(cell_before, cell_after, vectors[after], _four(blocks, now))
    else:
        _activate_rnn(blocks[0, now], vectors[after], cell == _RELU)


@jit_internal
def differentiate(
    cell: int,
    gates: Stack,
    states: Steps,
    cell_states: Steps,
    t: int,
    d_state: Steps,
    d_before: Steps,
    rows: BatchRows,
) -> None:
    """Replace the activations of step t with the gradients with respect to the sums.

    ``d_state`` (1, B, h) is the gradient with respect to the state after the step. ``d_before`` (1,
    B, h) holds what reaches a state, or an LSTM's cell state, past all products: that of the state
    after the step comes in, that of the state before it goes out.
    """
    blocks, here = gates.reshape(len(gates), -1), _span(d_state, 0, rows)
    before, after = _span(states, t, rows), _span(states, t + 1, rows)
    vectors, cell_vectors = states.reshape(-1), cell_states.reshape(-1)
    d_after, passed = d_state.reshape(-1)[here], d_before.reshape(-1)[here]
    if cell == _GRU:
        _differentiate_gru(vectors[before], d_after, passed, _four(blocks, before))
    elif cell == _LSTM:
        cell_before, cell_after = cell_vectors[before], cell_vectors[after]
        _differentiate_lstm(cell_before, cell_after, d_after, passed, _four(blocks, before))
    else:
        _differentiate_rnn(blocks[0, before], vectors[after], d_after, cell == _RELU)
