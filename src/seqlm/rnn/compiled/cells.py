"""What each kind of cell does, element by element: the part in which RNN, GRU and LSTM differ.

What a cell sums up at a step stands in a row of its *gates*, in blocks of h columns. Products with the
input fill blocks from the first on, products with the state before fill blocks from
``first_state_block`` on; most blocks get both. ``activate`` puts activations in the place of the sums and
writes the state after the step; ``differentiate`` puts gradients by the sums in the place of the activations.

Every loop goes over one row of a panel and changes two arrays at most: such loops become vector
instructions. Where numbers fill up a panel they are zeros, and stay so.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.rnn.compiled.compiling import inner, spliced
from seqlm.rnn.compiled.elementary import sigmoid, tanh
from seqlm.rnn.compiled.products import Panels
from seqlm.rnn.compiled.tiles import WIDTH

_ZERO, _ONE = np.float32(0), np.float32(1)


class Step(NamedTuple):
    """Where one step of some lanes stands, a lane a row."""

    gates: Panels
    row: int
    states: Panels
    memories: Panels
    """The second part of the state, of an LSTM only."""
    before: int
    """First row of the states and memories before the step."""
    after: int
    num_rows: int


class Slopes(NamedTuple):
    """Where the gradients of one step of some lanes stand."""

    states: Panels
    """Gradient by the states after the step."""
    row: int
    carry: Panels
    """What goes to the state or memory before the step past all products: in from the step after, out from this one."""
    lane: int


class Cell(NamedTuple):
    """A kind of cell."""

    number: int
    """By which :func:`activate` and :func:`differentiate` know it."""
    num_blocks: int
    input_blocks: tuple[int, ...]
    """Where each gate's product with the input goes, in the order in which the weights hold the gates."""
    state_blocks: tuple[int, ...]
    """The same for the state, counted from ``first_state_block``."""
    first_state_block: int
    has_memory: bool


@inner
def _squash(values: NDArray[np.float32]) -> None:
    for k in range(WIDTH):
        values[k] = sigmoid(values[k])


@inner
def _activate_tanh(step: Step) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            total, state = step.gates[p, step.row + r], step.states[p, step.after + r]
            for k in range(WIDTH):
                state[k] = tanh(total[k])


@inner
def _differentiate_tanh(step: Step, slopes: Slopes) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            gate, state, slope = (
                step.gates[p, step.row + r], step.states[p, step.after + r], slopes.states[p, slopes.row + r],
            )  # fmt: skip
            for k in range(WIDTH):
                gate[k] = slope[k] * (_ONE - state[k] * state[k])


@inner
def _activate_relu(step: Step) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            total, state = step.gates[p, step.row + r], step.states[p, step.after + r]
            for k in range(WIDTH):
                # A number that is not one stays so.
                state[k] = _ZERO if total[k] < 0 else total[k]


@inner
def _differentiate_relu(step: Step, slopes: Slopes) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            gate, state, slope = (
                step.gates[p, step.row + r], step.states[p, step.after + r], slopes.states[p, slopes.row + r],
            )  # fmt: skip
            for k in range(WIDTH):
                gate[k] = slope[k] * (_ONE if state[k] > 0 else _ZERO)


@spliced
def _gate(step: Step, block: int, p: int, r: int) -> NDArray[np.float32]:
    """Return the part of a row of the gates that lies in panel p of a block."""
    return step.gates[block * step.states.shape[0] + p, step.row + r]


# Blocks of a GRU: the candidate's share from the input, reset, update, the candidate's share from the state.


@inner
def _activate_gru(step: Step) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            new, reset, update, recurrent = (
                _gate(step, 0, p, r), _gate(step, 1, p, r), _gate(step, 2, p, r), _gate(step, 3, p, r),
            )  # fmt: skip
            before, after = step.states[p, step.before + r], step.states[p, step.after + r]
            _squash(reset)
            _squash(update)
            for k in range(WIDTH):
                new[k] = tanh(new[k] + reset[k] * recurrent[k])
            for k in range(WIDTH):
                after[k] = new[k] + update[k] * (before[k] - new[k])


@inner
def _differentiate_gru(step: Step, slopes: Slopes) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            new, reset, update, recurrent = (
                _gate(step, 0, p, r), _gate(step, 1, p, r), _gate(step, 2, p, r), _gate(step, 3, p, r),
            )  # fmt: skip
            slope, carry, before = (
                slopes.states[p, slopes.row + r], slopes.carry[p, slopes.lane + r], step.states[p, step.before + r],
            )  # fmt: skip
            for k in range(WIDTH):
                slope[k] += carry[k]
            for k in range(WIDTH):
                carry[k] = slope[k] * update[k]
            for k in range(WIDTH):
                kept = _ONE - update[k]
                update[k] *= slope[k] * (before[k] - new[k]) * kept
                new[k] = slope[k] * kept * (_ONE - new[k] * new[k])
            for k in range(WIDTH):
                passed = reset[k]
                reset[k] = new[k] * recurrent[k] * passed * (_ONE - passed)
                recurrent[k] = new[k] * passed


# Blocks of an LSTM: input, forget, candidate, output.


@inner
def _activate_lstm(step: Step) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            enter, forget, new, leave = (
                _gate(step, 0, p, r), _gate(step, 1, p, r), _gate(step, 2, p, r), _gate(step, 3, p, r),
            )  # fmt: skip
            before, after = step.memories[p, step.before + r], step.memories[p, step.after + r]
            state = step.states[p, step.after + r]
            _squash(enter)
            _squash(forget)
            for k in range(WIDTH):
                new[k] = tanh(new[k])
            _squash(leave)
            for k in range(WIDTH):
                after[k] = forget[k] * before[k] + enter[k] * new[k]
            for k in range(WIDTH):
                state[k] = leave[k] * tanh(after[k])


@inner
def _differentiate_lstm(step: Step, slopes: Slopes) -> None:
    for p in range(step.states.shape[0]):
        for r in range(step.num_rows):
            enter, forget, new, leave = (
                _gate(step, 0, p, r), _gate(step, 1, p, r), _gate(step, 2, p, r), _gate(step, 3, p, r),
            )  # fmt: skip
            before, after = step.memories[p, step.before + r], step.memories[p, step.after + r]
            slope, carry = slopes.states[p, slopes.row + r], slopes.carry[p, slopes.lane + r]
            for k in range(WIDTH):
                seen = tanh(after[k])
                carry[k] += slope[k] * leave[k] * (_ONE - seen * seen)
                leave[k] *= slope[k] * seen * (_ONE - leave[k])
            for k in range(WIDTH):
                share = enter[k]
                enter[k] = carry[k] * new[k] * share * (_ONE - share)
                new[k] = carry[k] * share * (_ONE - new[k] * new[k])
            for k in range(WIDTH):
                slope_of_memory, share = carry[k], forget[k]
                carry[k] = slope_of_memory * share
                forget[k] = slope_of_memory * before[k] * share * (_ONE - share)


_TANH, _RELU, _GRU, _LSTM = range(4)
CELLS = {
    "tanh": Cell(_TANH, 1, (0,), (0,), 0, False),
    "relu": Cell(_RELU, 1, (0,), (0,), 0, False),
    "gru": Cell(_GRU, 4, (1, 2, 0), (0, 1, 2), 1, False),
    "lstm": Cell(_LSTM, 4, (0, 1, 2, 3), (0, 1, 2, 3), 0, True),
}
"""The kinds of cells by name; an RNN by its activation."""


# One code for all kinds of cells, which takes its way at run time, is compiled once and kept as one.


@inner
def activate(cell: int, step: Step) -> None:
    """Put activations in the place of the sums, and write the state after the step."""
    if cell == _TANH:
        _activate_tanh(step)
    elif cell == _RELU:
        _activate_relu(step)
    elif cell == _GRU:
        _activate_gru(step)
    else:
        _activate_lstm(step)


@inner
def differentiate(cell: int, step: Step, slopes: Slopes) -> None:
    """Put gradients by the sums in the place of the activations."""
    if cell == _TANH:
        _differentiate_tanh(step, slopes)
    elif cell == _RELU:
        _differentiate_relu(step, slopes)
    elif cell == _GRU:
        _differentiate_gru(step, slopes)
    else:
        _differentiate_lstm(step, slopes)
