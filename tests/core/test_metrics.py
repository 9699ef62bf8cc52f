"""Perplexity and bits per character."""

import math

import pytest

from seqlm.core.metrics import bits_per_character, perplexity


def test_perplexity_is_summed_first_and_exponentiated_last() -> None:
    # Two tokens with p = 1/2 and 1/8: exp((ln 2 + ln 8) / 2) = 4, not the mean of 2 and 8.
    assert perplexity(math.log(2) + math.log(8), 2) == pytest.approx(4)
    assert bits_per_character(math.log(2) + math.log(8), 8) == pytest.approx(0.5)
    assert math.isinf(perplexity(1e6, 1))
