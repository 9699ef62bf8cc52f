"""exp and log against the C library's, and their bits, which are the same on every processor."""

import hashlib
import math

import numpy as np
import pytest

from seqlm.core.elementary import Floats, exp, log

ARGUMENTS = np.concatenate([np.linspace(-744, 709, 20_001), np.linspace(-1, 1, 20_001)])


def max_ulps(found: Floats, expected: list[float]) -> float:
    return float(np.max(np.abs(found - expected) / np.spacing(np.abs(expected))))


def test_exp_and_log_are_right_to_a_unit_in_the_last_place() -> None:
    exponentials = [math.exp(x) for x in ARGUMENTS.tolist()]
    assert max_ulps(exp(ARGUMENTS), exponentials) <= 1
    near_one = 1 + np.linspace(-0.1, 0.1, 20_001)
    values = [*exponentials, *near_one.tolist()]
    assert max_ulps(log(values), [math.log(x) for x in values]) <= 1


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
