"""The bootstrap: intervals of models, and comparisons of two models."""

import math

import numpy as np
import pytest

from made_scores import scored_text
from seqlm.evaluate.uncertainty import bootstrap_bits
from seqlm.heldout.scored_text import ScoredText


def test_the_interval_contains_the_true_value_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(0), 0
    for seed in range(100):
        # Neighbouring tokens are equally difficult, as in text.
        nats = np.repeat(rng.exponential(1.0, 200), 10)
        low, high = bootstrap_bits(nats, scored_text(2000), seed).interval
        covered += low <= 1 / math.log(2) <= high
    assert 85 <= covered <= 99


def test_models_are_compared_on_the_same_draws() -> None:
    rng, text = np.random.default_rng(0), scored_text(2000)
    base = rng.exponential(1.0, 2000)
    first, second, shuffled = (bootstrap_bits(nats, text, 0) for nats in (base, base + 0.01, rng.permutation(base)))
    # A hundredth of a nat more for every token is certain; the same numbers in another order are not told apart.
    assert first.compare(second) == "better"
    assert second.compare(first) == "worse"
    assert first.compare(shuffled) == "not told apart"


def words(*lengths: int, num_separators: int) -> ScoredText:
    """Return a text of known words, of which the first is not scored."""
    return ScoredText(
        scored_chars=sum(lengths[1:]) + num_separators,
        unknown_costs=np.zeros(len(lengths)),
        ends=np.cumsum(lengths),
        unknown_share=0.0,
    )


@pytest.mark.parametrize("num_scored", [170, 2, 1])
def test_a_model_with_equal_bits_for_every_character_has_no_uncertainty(num_scored: int) -> None:
    # The 50 blocks of 171 characters have 3 or 4 of them, those of 2 or 3 characters at most one.
    low, high = bootstrap_bits(np.full(num_scored, math.log(28)), scored_text(num_scored), 0).interval
    assert low == pytest.approx(math.log2(28)) == high


def test_words_count_with_their_separators() -> None:
    # 2 bits for each letter and each separator.
    lengths = np.resize([1, 7, 3, 2], 401)
    text = words(*lengths, num_separators=400)
    low, high = bootstrap_bits((lengths[1:] + 1) * 2 * math.log(2), text, 0).interval
    assert low == pytest.approx(2) == high
