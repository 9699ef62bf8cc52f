"""One step of a GRU and of an LSTM, forward and backward, against their equations in NumPy."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from seqlm.networks.compiled.cells import LAYOUTS, activate, differentiate
from seqlm.networks.compiled.tiles import BatchRows, empty_rows

B, H = 5, 37


@njit
def step(kind: int, arrays: tuple, rows: BatchRows) -> None:
    gates, states, cell_states = arrays
    activate(kind, gates, 0, states, cell_states, 0, rows)


@njit
def step_back(kind: int, arrays: tuple, d_state: Any, d_before: Any, rows: BatchRows) -> None:
    gates, states, cell_states = arrays
    differentiate(kind, gates, states, cell_states, 0, d_state, d_before, rows)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(sums: np.ndarray, before: np.ndarray, _: np.ndarray, d_state: np.ndarray, d_later: np.ndarray) -> tuple:
    """Cho et al. (2014), with the reset gate after the product.

    The sums are the candidate's product with the input, reset, update, and the candidate's product with the state.
    ``d_later`` is what the step after sends to the state past its products.
    """
    by_input, by_state = sums[0], sums[3]
    reset, update = sigmoid(sums[1]), sigmoid(sums[2])
    candidate = np.tanh(by_input + reset * by_state)
    state = (1 - update) * candidate + update * before

    d_state = d_state + d_later
    d_candidate = d_state * (1 - update) * (1 - candidate**2)
    d_reset = d_candidate * by_state * reset * (1 - reset)
    d_update = d_state * (before - candidate) * update * (1 - update)
    return state, [d_candidate, d_reset, d_update, d_candidate * reset], d_state * update


def lstm(sums: np.ndarray, _: np.ndarray, before: np.ndarray, d_state: np.ndarray, d_later: np.ndarray) -> tuple:
    """Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).

    The sums are those of the input gate, forget gate, candidate and output gate. ``before`` is the cell state, and
    ``d_later`` what the step after sends to it.
    """
    write, forget, candidate, output = sigmoid(sums[0]), sigmoid(sums[1]), np.tanh(sums[2]), sigmoid(sums[3])
    cell_state = forget * before + write * candidate
    state = output * np.tanh(cell_state)

    d_cell_state = d_later + d_state * output * (1 - np.tanh(cell_state) ** 2)
    d_write = d_cell_state * candidate * write * (1 - write)
    d_forget = d_cell_state * before * forget * (1 - forget)
    d_candidate = d_cell_state * write * (1 - candidate**2)
    d_output = d_state * np.tanh(cell_state) * output * (1 - output)
    return state, [d_write, d_forget, d_candidate, d_output], d_cell_state * forget


@pytest.mark.parametrize("equations", [gru, lstm])
def test_a_step_and_its_gradients_are_those_of_the_equations(equations: Any) -> None:
    rng, kind = np.random.default_rng(1), LAYOUTS[equations.__name__].kind
    numbers = rng.normal(size=(4, B, H)), *rng.normal(size=(4, B, H))
    state, gradients, d_before = equations(*numbers)

    gates, states, cell_states = arrays = empty_rows(4, 1, B, H), empty_rows(2, B, H), empty_rows(2, B, H)
    d_states, passed = empty_rows(1, B, H), empty_rows(1, B, H)
    for array, values in zip((gates[:, 0], states[0], cell_states[0], d_states[0], passed[0]), numbers, strict=True):
        array[..., :H] = values
    for first, last in ((0, 2), (2, B)):  # as two threads share the batch rows
        step(kind, arrays, BatchRows(first, last))
        step_back(kind, arrays, d_states, passed, BatchRows(first, last))
    np.testing.assert_allclose(states[1, :, :H], state, atol=1e-6)
    np.testing.assert_allclose(gates[:, 0, :, :H], gradients, atol=1e-6)
    np.testing.assert_allclose(passed[0, :, :H], d_before, atol=1e-6)
    assert not gates[:, 0, :, H:].any()  # what fills up a row adds nothing to any gradient
