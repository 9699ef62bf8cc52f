"""exp and tanh in single precision against NumPy in double precision."""

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from seqlm.rnn.compiled.elementary import exp, tanh


@njit(error_model="numpy")
def fill(results: NDArray[np.float32], function: Any, values: NDArray[np.float32]) -> None:
    for place in range(len(values)):
        results[place] = function(values[place])


def results_of(function: Any, values: NDArray[np.float32]) -> NDArray[np.float32]:
    results = np.empty_like(values)
    fill(results, function, values)
    return results


_SMALL = np.logspace(-30, 0, 100_001)
_EVERYWHERE = np.concatenate([np.linspace(-12, 12, 1_000_000), _SMALL, -_SMALL])


@pytest.mark.parametrize(
    ("ours", "numpys", "arguments", "limit"),
    [(exp, np.exp, np.linspace(-86.9, 0, 1_000_001), 1.5), (tanh, np.tanh, _EVERYWHERE, 3)],
)
def test_errors_are_a_few_units_in_the_last_place(ours: Any, numpys: Any, arguments: Any, limit: float) -> None:
    values = arguments.astype(np.float32)
    exact = numpys(values.astype(np.float64))
    error = np.abs(results_of(ours, values) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() < limit


def test_what_is_not_finite_stays_so() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    np.testing.assert_array_equal(results_of(tanh, values), [np.nan, 1, -1, 0])
    results = results_of(exp, np.array([np.nan, -np.inf, -1e30, 0], np.float32))
    assert np.isnan(results[0])
    assert results[3] == 1
    assert (results[1:3] < 1e-37).all()
