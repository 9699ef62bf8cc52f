"""Zipf's law (8.3.1) and the growth of the vocabulary (Heaps' law)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts import Ids

_Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors of a normal distribution."""
_MAX_ALPHA = 20.0


@dataclass(frozen=True)
class ZipfFit:
    """The exponent of n_i proportional to i^-alpha, fitted in two ways over one range of ranks."""

    max_rank: int
    """Ranks 1 to this one were fitted: those whose count reaches the smallest count asked for."""
    alpha_least_squares: float
    """Slope of the line through log rank and log count, as in the book's figures, sign reversed."""
    intercept: float
    """Natural logarithm of the line's count at rank 1."""
    alpha_likelihood: float
    """Maximum likelihood, each token an independent draw from p(i) proportional to i^-alpha."""
    alpha_low: float
    alpha_high: float
    """95 % interval of ``alpha_likelihood`` from its Fisher information."""
    share_once: float
    """Share of the distinct n-grams that occur once."""


def fit_zipf(counts: NDArray[np.int64], min_count: int) -> ZipfFit:
    """Fit Zipf's exponent to counts by falling size, over the ranks whose count reaches ``min_count``.

    Where fewer than two ranks do, all ranks are fitted. Raises ValueError for fewer than
    two counts.
    """
    if len(counts) < 2:
        raise ValueError("Zipf's law needs at least two distinct n-grams")
    max_rank = int(np.count_nonzero(counts >= min_count))
    max_rank = max_rank if max_rank >= 2 else len(counts)
    log_ranks = np.log(np.arange(1, max_rank + 1))
    fitted = counts[:max_rank].astype(np.float64)
    slope, intercept = np.polyfit(log_ranks, np.log(fitted), 1)
    alpha = _most_likely_alpha(log_ranks, fitted)
    _, variance = _moments(log_ranks, alpha)
    half_width = _Z_95 / math.sqrt(fitted.sum() * variance)
    return ZipfFit(
        max_rank=max_rank,
        alpha_least_squares=float(-slope),
        intercept=float(intercept),
        alpha_likelihood=alpha,
        alpha_low=alpha - half_width,
        alpha_high=alpha + half_width,
        share_once=float(np.mean(counts == 1)),
    )


def _most_likely_alpha(log_ranks: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    """Solve for the alpha whose mean log rank is the data's; the mean falls as alpha grows."""
    wanted = float(log_ranks @ counts / counts.sum())
    low, high = 0.0, _MAX_ALPHA
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _moments(log_ranks, middle)[0] > wanted else (low, middle)
    return (low + high) / 2


def _moments(log_ranks: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Return mean and variance of the log rank under p(i) proportional to i^-alpha."""
    weights = np.exp(-alpha * log_ranks)
    weights /= weights.sum()
    mean = float(weights @ log_ranks)
    return mean, float(weights @ (log_ranks - mean) ** 2)


def vocabulary_growth(ids: Ids, num_points: int = 60) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return text lengths, distinct tokens up to each, and Heaps' exponent beta.

    Heaps' law says distinct(N) is proportional to N^beta; beta is the slope of the line
    through the logarithms, the first twentieth of the points left out.
    """
    firsts = np.sort(np.unique(np.asarray(ids), return_index=True)[1])
    lengths = np.unique(np.geomspace(1, len(ids), num_points).astype(np.int64))
    distinct = np.searchsorted(firsts, lengths).astype(np.int64)
    used = slice(len(lengths) // 20, None)
    beta = np.polyfit(np.log(lengths[used]), np.log(distinct[used]), 1)[0] if len(lengths) > 2 else math.nan
    return lengths, distinct, float(beta)


def thin_ranks(num_ranks: int, num_points: int = 400) -> NDArray[np.int64]:
    """Return ranks, from 1, that draw a rank-frequency curve on a logarithmic axis."""
    if num_ranks == 0:
        return np.empty(0, np.int64)
    return np.unique(np.geomspace(1, num_ranks, num_points).round().astype(np.int64))
