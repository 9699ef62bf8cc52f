"""exp, log and tanh against the C library's and NumPy's, and their bits, which are the same on every processor."""

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from numba import vectorize

from seqlm.core.elementary import exp, exp_single, log, tanh_single

ARGUMENTS = np.concatenate([np.linspace(-744, 709, 20_001), np.linspace(-1, 1, 20_001)])


def test_exp_and_log_are_right_to_a_unit_in_the_last_place() -> None:
    exponentials = [math.exp(x) for x in ARGUMENTS.tolist()]
    np.testing.assert_array_max_ulp(exp(ARGUMENTS), np.array(exponentials), 1)
    near_one = 1 + np.linspace(-0.1, 0.1, 20_001)
    values = [*exponentials, *near_one.tolist()]
    np.testing.assert_array_max_ulp(log(values), np.array([math.log(x) for x in values]), 1)


def test_special_values() -> None:
    np.testing.assert_array_equal(
        exp([math.nan, math.inf, -math.inf, 0, 710, -746, -745]), [math.nan, math.inf, 0, 1, math.inf, 0, 5e-324]
    )
    np.testing.assert_array_equal(
        log([math.nan, math.inf, -1, 0, 1, -math.inf]), [math.nan, math.inf, math.nan, -math.inf, 0, math.nan]
    )
    assert log(5e-324) == pytest.approx(-744.4400719213812)
    assert exp(np.zeros((2, 0, 3))).shape == (2, 0, 3)


def test_the_bits_are_those_of_every_processor() -> None:
    found = exp(ARGUMENTS).tobytes() + log(np.linspace(1e-3, 1e3, 40_001)).tobytes()
    assert hashlib.sha256(found).hexdigest() == "e292d3574e627b190bcf24697d3f73174d58443c29445e8ca71eb1465b6c29e6"


def of_each(function: Any) -> Any:
    """Return a compiled function of one number as a function of arrays."""
    return vectorize(["float32(float32)"])(lambda value: function(value))


SMALL = np.logspace(-30, 0, 100_001)
EVERYWHERE = np.concatenate([np.linspace(-12, 12, 1_000_000), SMALL, -SMALL])


@pytest.mark.parametrize(
    ("ours", "numpys", "arguments", "limit"),
    [(exp_single, np.exp, np.linspace(-86.9, 0, 1_000_001), 1.5), (tanh_single, np.tanh, EVERYWHERE, 3)],
)
def test_errors_of_single_precision_are_a_few_units(ours: Any, numpys: Any, arguments: Any, limit: float) -> None:
    values = arguments.astype(np.float32)
    exact = numpys(values.astype(np.float64))
    error = np.abs(of_each(ours)(values) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() < limit


@np.errstate(invalid="ignore")
def test_what_is_not_finite_stays_so_in_single_precision() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    np.testing.assert_array_equal(of_each(tanh_single)(values), [np.nan, 1, -1, 0])
    results = of_each(exp_single)(np.array([np.nan, -np.inf, -1e30, 0], np.float32))
    assert np.isnan(results[0])
    assert results[3] == 1
    assert (results[1:3] < 1e-37).all()
