"""Zipf's law (8.3.7) and the growth of the vocabulary (Heaps' law)."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, exp, geomspace, log

_Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors of a normal distribution."""

_BLOCK = 1 << 20
"""Ranks that are worked on at once, so that many of them need little memory."""
_MAX_ALPHA = 20.0
_TOLERANCE = 1e-12
_MAX_STEPS = 100


@dataclass(frozen=True)
class ZipfFit:
    """The exponent of n_i proportional to i^-alpha, fitted in two ways over one range of ranks."""

    max_rank: int
    """The last rank that was fitted: ranks up to it have at least the count asked for."""
    alpha_least_squares: float
    """Slope of the line through log rank and log count, as in the book's figures, sign reversed."""
    intercept: float
    """Natural logarithm of the line's count at rank 1."""
    alpha_likelihood: float
    """Maximum likelihood estimate, if each token is an independent draw from p(i) proportional to i^-alpha."""
    alpha_low: float
    alpha_high: float
    """95 % interval of ``alpha_likelihood`` from its Fisher information; too narrow, because tokens are dependent."""
    share_once: float
    """Share of the distinct n-grams that occur once."""


def fit_zipf(counts: NDArray[Any], min_count: int) -> ZipfFit:
    """Fit Zipf's exponent to counts in falling order, over the ranks whose count reaches ``min_count``.

    If fewer than two ranks reach it, all ranks are fitted. Raises ValueError for fewer than two counts.
    """
    if len(counts) < 2:
        raise ValueError("Zipf's law needs at least two distinct n-grams")
    max_rank = int(np.count_nonzero(counts >= min_count))
    max_rank = max_rank if max_rank >= 2 else len(counts)
    fitted = counts[:max_rank]
    slope, intercept = _line((logs, log(part)) for logs, part in _with_log_ranks(fitted))
    # The mean log rank is all that the likelihood needs to know of the tokens.
    total = float(fitted.sum())
    wanted = sum(float((part * logs).sum()) for logs, part in _with_log_ranks(fitted)) / total
    alpha = _most_likely_alpha(max_rank, wanted)
    half_width = _Z_95 / math.sqrt(total * _moments(max_rank, alpha)[1])
    return ZipfFit(
        max_rank=max_rank,
        alpha_least_squares=-slope,
        intercept=intercept,
        alpha_likelihood=alpha,
        alpha_low=alpha - half_width,
        alpha_high=alpha + half_width,
        share_once=float(np.mean(counts == 1)),
    )


def _with_log_ranks(counts: NDArray[Any]) -> Iterator[tuple[Floats, Floats]]:
    """Yield the logarithms of the ranks and the counts, a block at a time."""
    for start in range(0, len(counts), _BLOCK):
        part = counts[start : start + _BLOCK].astype(np.float64)
        yield _log_ranks(start, start + len(part)), part


def _log_ranks(start: int, stop: int) -> Floats:
    return log(np.arange(start + 1, stop + 1))


def _line(blocks: Iterable[tuple[Floats, Floats]]) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line through points, whose x and y come in blocks."""
    sums = np.zeros(5)
    for x, y in blocks:
        sums += (len(x), x.sum(), y.sum(), (x * x).sum(), (x * y).sum())
    mean_x, mean_y, mean_xx, mean_xy = sums[1:] / sums[0]
    slope = (mean_xy - mean_x * mean_y) / (mean_xx - mean_x**2)
    return float(slope), float(mean_y - slope * mean_x)


def _most_likely_alpha(max_rank: int, wanted: float) -> float:
    """Solve for the alpha whose mean log rank is ``wanted``; the mean falls as alpha grows.

    Newton's method: the mean's derivative is minus the variance. A step that would leave the interval that contains
    the solution halves the interval instead.
    """
    low, high = 0.0, _MAX_ALPHA
    alpha = 1.0
    for _ in range(_MAX_STEPS):
        mean, variance = _moments(max_rank, alpha)
        low, high = (alpha, high) if mean > wanted else (low, alpha)
        step = (mean - wanted) / variance if variance > 0 else math.inf
        new = alpha + step if low < alpha + step < high else (low + high) / 2
        if abs(new - alpha) <= _TOLERANCE:
            return new
        alpha = new
    return alpha


def _moments(max_rank: int, alpha: float) -> tuple[float, float]:
    """Return mean and variance of the log rank under p(i) proportional to i^-alpha, i up to ``max_rank``."""
    sums = np.zeros(3)
    for start in range(0, max_rank, _BLOCK):
        logs = _log_ranks(start, min(start + _BLOCK, max_rank))
        weights = exp(-alpha * logs)
        first = weights * logs
        sums += (weights.sum(), first.sum(), (first * logs).sum())
    mean = sums[1] / sums[0]
    return float(mean), float(max(sums[2] / sums[0] - mean**2, 0.0))


def vocabulary_growth(
    firsts: NDArray[np.int64], num_tokens: int, num_points: int = 60
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return text lengths, distinct tokens up to each, and Heaps' exponent beta.

    ``firsts`` has the position at which each distinct token first occurs in a text of ``num_tokens`` tokens. Heaps' law
    says that distinct(N) is proportional to N^beta; beta is the slope of the line through the logarithms, without the
    first twentieth of the points.
    """
    lengths = np.unique(geomspace(num_tokens, num_points).astype(np.int64))
    distinct = np.searchsorted(np.sort(firsts), lengths).astype(np.int64)
    used = slice(len(lengths) // 20, None)
    beta = _line([(log(lengths[used]), log(distinct[used]))])[0] if len(lengths) > 2 else math.nan
    return lengths, distinct, beta


def thin_ranks(num_ranks: int, num_points: int = 400) -> NDArray[np.int64]:
    """Return ranks, from 1, that draw a rank-frequency curve on a logarithmic axis."""
    return np.unique(geomspace(num_ranks, num_points).round().astype(np.int64))
