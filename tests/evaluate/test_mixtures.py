"""Mixtures of two models."""

import math

import numpy as np
import pytest

from seqlm.evaluate.mixtures import best_mixture, mix
from seqlm.score.measures import Score


def test_a_mixture_is_no_worse_on_val_than_either() -> None:
    rng = np.random.default_rng(0)
    first = Score("a", "char", {"val": rng.exponential(1, 200), "test": rng.exponential(1, 200)})
    second = Score("b", "char", {"val": rng.exponential(1, 200), "test": rng.exponential(1, 200)})
    mixed, weight = best_mixture(first, second)
    assert 0 < weight < 1
    assert mixed.nats["val"].sum() < min(first.nats["val"].sum(), second.nats["val"].sum())
    # Half of p = 1/2 and half of p = 1/8 is 5/16.
    assert mix(np.log([2.0]), np.log([8.0]), 0.5) == pytest.approx([math.log(16 / 5)])
