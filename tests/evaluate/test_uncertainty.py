"""The bootstrap: intervals of models, and comparisons of two models."""

import math

import numpy as np

from made_scores import scored_text
from seqlm.evaluate.uncertainty import bootstrap_bits


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
