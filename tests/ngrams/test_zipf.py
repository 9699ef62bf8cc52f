"""Zipf's and Heaps' laws on data whose exponents are known."""

import numpy as np
import pytest

from seqlm.ngrams.statistics import fit_zipf, thin_ranks, vocabulary_growth


@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.4])
def test_both_fits_find_the_exponent_of_exact_counts(alpha: float) -> None:
    counts = np.round(1e7 * np.arange(1, 1001) ** -alpha).astype(np.int64)
    fit = fit_zipf(counts, 1)
    assert fit.alpha_least_squares == pytest.approx(alpha, abs=1e-3)
    assert fit.alpha_likelihood == pytest.approx(alpha, abs=1e-3)
    assert fit.alpha_low < fit.alpha_likelihood < fit.alpha_high


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    probs = np.arange(1, 201) ** -1.0
    probs /= probs.sum()
    rng, covered = np.random.default_rng(0), 0
    for _ in range(200):
        # Ranks are known here, so sorting does not bend the curve.
        fit = fit_zipf(np.maximum(rng.multinomial(20_000, probs), 1), 1)
        covered += fit.alpha_low <= 1.0 <= fit.alpha_high
    # 190 of 200 on average, with a standard deviation of 3.
    assert 178 <= covered <= 199


def test_only_frequent_ngrams_are_fitted_and_rare_ones_counted() -> None:
    fit = fit_zipf(np.array([8, 4, 2, 1, 1]), 2)
    assert fit.max_rank == 3
    assert fit.share_once == pytest.approx(2 / 5)


def test_too_few_ngrams_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        fit_zipf(np.array([3]), 1)


def test_growth_counts_distinct_tokens() -> None:
    # The text 0 0 1 0 2 2: its three tokens first occur at positions 0, 2 and 4.
    lengths, distinct, _ = vocabulary_growth(np.array([4, 0, 2]), 6, num_points=50)
    assert dict(zip(lengths.tolist(), distinct.tolist(), strict=True)) == {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3}


def test_thinned_ranks_keep_both_ends() -> None:
    ranks = thin_ranks(10_000)
    assert (ranks[0], ranks[-1]) == (1, 10_000)
    assert len(ranks) <= 400
