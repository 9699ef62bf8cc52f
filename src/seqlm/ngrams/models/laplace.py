"""Laplace smoothing (8.3.5), for any order, and the choice of its epsilons on val."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.core.metrics import perplexity
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs, Rows
from seqlm.ngrams.models.base import Fit, NGramModel
from seqlm.ngrams.settings import LaplaceSettings, NgramsParams

MAX_TUNING_TOKENS = 250_000
EPSILON_GRID = [10 ** (sixths / 6) for sixths in range(-18, 31)]
_BLOCK = 1 << 14
"""Tokens that are smoothed at once while epsilons are tried, so that they stay in the processor's
cache."""


@dataclass(frozen=True)
class Laplace(NGramModel):
    """A model of one order.

    ``P(x | c) = (n(c, x) + e_n P_back(x)) / (n(c) + e_n)``, where n(c) is the sum of the counts of
    the context's continuations. As in the book, P_back is P(x) at every order; the unigram backs
    off to 1 / m. For a context that was never seen, P is P_back, which is also the limit for
    epsilon -> 0.
    """

    smoothing = "laplace"
    backoff = "unigram"
    schema = LaplaceSettings

    counts: NgramCounts
    order: int
    epsilons: tuple[float, ...]
    """e_1 to e_order."""
    chosen_on_val: bool = False
    """Whether the epsilons were."""

    @classmethod
    def fit(cls, counts: NgramCounts, val_ids: Ids, params: NgramsParams) -> Fit:
        """Take the epsilons from the settings, or those that are best on val; the table shows all
        that were tried."""
        laplace = params.laplace
        epsilons, curve = tune_epsilons(counts, val_ids, laplace.max_order)
        if not (chosen := laplace.epsilons == "auto"):
            epsilons = tuple(laplace.epsilons[: laplace.max_order])
        settings = {"epsilons": list(epsilons), "chosen_on_val": chosen}
        return Fit(settings, {"epsilons": curve})

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:
        """Return a model for each order that has an epsilon."""
        epsilons = tuple(settings["epsilons"])
        orders = range(1, len(epsilons) + 1)
        return [cls(counts, order, epsilons[:order], settings["chosen_on_val"]) for order in orders]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The epsilons."""
        return {"epsilons": list(self.epsilons), "chosen_on_val": self.chosen_on_val}

    @cached_property
    def unigram(self) -> Probs:
        """The probability of each token without any context."""
        shares, weight = self.interpolation(1, slice(None), slice(None))
        return shares + weight * (1 / self.counts.vocab_size)

    def interpolation(
        self, n: int, rows: Rows | slice, contexts: Rows | slice
    ) -> tuple[Probs, Probs]:
        """Return n(c, x) / (n(c) + e_n) and e_n / (n(c) + e_n)."""
        table, epsilon = self.counts.table(n), self.epsilons[n - 1]
        seen, sums = table.counts[rows], table.context_totals[contexts] + epsilon
        shares, weights = np.zeros(np.broadcast_shapes(seen.shape, sums.shape)), np.ones(sums.shape)
        np.divide(seen, sums, out=shares, where=sums > 0)
        return shares, np.divide(epsilon, sums, out=weights, where=sums > 0)


def tune_epsilons(
    counts: NgramCounts, val_ids: Ids, order: int
) -> tuple[tuple[float, ...], list[dict[str, float]]]:
    """Choose the epsilon of each order on val, or on its first quarter of a million tokens, from
    the lowest order up.

    Returns the epsilons and the curve: rows with order, epsilon and val_perplexity.
    """
    ids = val_ids[:MAX_TUNING_TOKENS]
    lower = unigram = np.full(max(len(ids) - 1, 0), 1 / counts.vocab_size)
    positions = [
        (1, np.zeros(len(lower), np.int64), np.asarray(ids[1:], np.int64)),
        *counts.lookups(ids, order),
    ]
    chosen: tuple[float, ...] = ()
    curve: list[dict[str, float]] = []
    for n, contexts, rows in positions:
        table = counts.table(n)
        seen = np.where(rows >= 0, table.counts[rows], 0)
        totals = np.where(contexts >= 0, table.context_totals[contexts], 0)
        perplexities = _perplexities(seen, totals, lower, unigram)
        tried = zip(EPSILON_GRID, perplexities, strict=True)
        curve += [
            {"order": n, "epsilon": epsilon, "val_perplexity": perplexity}
            for epsilon, perplexity in tried
        ]
        chosen += (EPSILON_GRID[int(np.argmin(perplexities))],)
        lower = Laplace(counts, n, chosen).probs(ids)
        unigram = lower if n == 1 else unigram
    return chosen, curve


def _perplexities(
    seen: NDArray[Any], totals: NDArray[np.int64], lower: Probs, back: Probs
) -> list[float]:
    """Return the perplexity with each epsilon of the grid.

    ``lower`` has p of all tokens under the order below, which stays for the first ones: their
    context is too short.
    """
    probs, found = lower.copy(), []
    start = len(probs) - len(seen)
    # As the model's own formula, in fewer operations.
    counts, sums, back = seen.astype(np.float64), totals.astype(np.float64), back[start:]
    for epsilon in EPSILON_GRID:
        for first in range(0, len(seen), _BLOCK):
            block = slice(first, first + _BLOCK)
            probs[start:][block] = (counts[block] + epsilon * back[block]) / (sums[block] + epsilon)
        # Logarithms take longer than products, so those of products of four.
        end = len(probs) // 4 * 4
        products = np.multiply.reduce(probs[:end].reshape(4, -1), axis=0)
        sum_of_logs = float(log(products).sum() + log(probs[end:]).sum())
        found.append(perplexity(-sum_of_logs / len(probs), 1))
    return found
