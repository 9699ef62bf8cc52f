"""What sums up a model's surprisals."""

import math

import numpy as np
import pytest

from seqlm.score.heldout.splits import Stream
from seqlm.score.store import measure


def test_measures_by_hand() -> None:
    nats = np.log([2.0, 8.0])
    found = measure(nats, Stream(np.array([1, 0, 1]), 4, np.array([0, math.log(4), 0]), np.array([1, 2, 3])))
    assert found["perplexity"] == pytest.approx(4)
    assert found["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8) and 2 bits for the unknown token: 6 bits over 4 characters.
    assert found["bits_per_character"] == pytest.approx(1.5)


def test_infinity_is_null_with_a_reason() -> None:
    found = measure(np.array([1.0, np.inf]), Stream(np.ones(3, np.int64), 3, np.zeros(3), np.arange(1, 4)))
    assert found["perplexity"] is None
    assert found["reason"] == "infinite: 1 tokens have probability 0"
