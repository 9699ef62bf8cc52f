"""exp and tanh in single precision against NumPy in double precision."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlm.rnn.compiled.elementary import exp, tanh


@njit(error_model="numpy")
def map_exp(values: NDArray[np.float32], results: NDArray[np.float32]) -> None:
    for place in range(len(values)):
        results[place] = exp(values[place])


@njit(error_model="numpy")
def map_tanh(values: NDArray[np.float32], results: NDArray[np.float32]) -> None:
    for place in range(len(values)):
        results[place] = tanh(values[place])


def units_in_the_last_place(values: NDArray[np.float32], exact: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(values - exact) / np.spacing(np.abs(exact).astype(np.float32))))


def test_exp_is_right_to_a_unit_in_the_last_place() -> None:
    values = np.linspace(-86.9, 0, 1_000_001).astype(np.float32)
    results = np.empty_like(values)
    map_exp(values, results)
    assert units_in_the_last_place(results, np.exp(values.astype(np.float64))) < 1.5


def test_tanh_is_right_to_three_units_in_the_last_place_near_zero_too() -> None:
    small = np.logspace(-30, 0, 100_001)
    values = np.concatenate([np.linspace(-12, 12, 1_000_001), small, -small]).astype(np.float32)
    values = values[values != 0]
    results = np.empty_like(values)
    map_tanh(values, results)
    assert units_in_the_last_place(results, np.tanh(values.astype(np.float64))) < 3


def test_what_is_not_finite_stays_so() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    results = np.empty_like(values)
    map_tanh(values, results)
    np.testing.assert_array_equal(results, np.array([np.nan, 1, -1, 0], np.float32))
    map_exp(np.array([np.nan, -np.inf, -1e30, 0], np.float32), results)
    assert np.isnan(results[0])
    assert results[3] == 1
    assert (results[1:3] < 1e-37).all()
