"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3).

A model stores no probability: each is computed from whole numbers when it is asked for. So tables
of tens of millions of n-grams, which may be mapped from files, need little memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, NgramCounts, Probs, Rows, Table
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.settings import KneserNeySettings, Unknown

Discounts = tuple[float, float, float]

FALLBACK_DISCOUNTS: Discounts = (0.5, 1.0, 1.5)
"""For orders in which an estimated discount is invalid, as with KenLM's ``--discount_fallback``.

All three are replaced: keeping the valid ones made models of order 3 worse on most texts that were
tried."""


def describe_fallback(orders: Iterable[int]) -> str:
    """Return what a user should know about the orders with the fallback discounts."""
    replaced = ", ".join(map(str, sorted(orders)))
    discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
    return (
        f"the estimated Kneser-Ney discounts of order {replaced} are not valid: "
        f"{discounts} replace them"
    )


@dataclass(frozen=True)
class OrderStatistics:
    """One order of a model: all that its probabilities follow from."""

    adjusted: NDArray[np.integer]
    """For each row of the order, its count or, below the highest order, the number of different
    tokens before it."""
    totals: NDArray[np.integer]
    """For each context, the sum of the adjusted counts of its continuations."""
    backoffs: Probs
    """For each context, the weight of the order below."""
    discounts: Discounts
    """For counts of 1, 2, and 3 or more."""

    @classmethod
    def of(cls, table: Table, adjusted: NDArray[np.integer]) -> Self:
        """Return the statistics of an order from its table and its adjusted counts."""
        discounts = _estimate_discounts(adjusted)
        totals = table.sum_by_context(lambda rows: adjusted[rows])
        backoffs = table.sum_by_context(lambda rows: _discounts_of(adjusted[rows], discounts))
        np.divide(backoffs, totals, out=backoffs, where=totals > 0)
        # A context that was never continued leaves everything to the order below.
        backoffs[totals == 0] = 1
        smallest = np.min_scalar_type(int(totals.max()))
        return cls(adjusted, totals.astype(smallest), backoffs, discounts)

    @classmethod
    def of_lower(cls, counts: NgramCounts, n: int) -> Self:
        """Return the statistics of order n in a model of a higher order."""
        suffixes, num_rows = counts.table(n + 1).suffix_rows, len(counts.table(n))
        adjusted, at_once = np.zeros(num_rows, np.int64), max(BLOCK_ROWS, num_rows)
        for start in range(0, len(suffixes), at_once):
            adjusted += np.bincount(suffixes[start : start + at_once], minlength=num_rows)
        # The n-gram that begins the text follows the text's border, which counts as a token of its
        # own.
        adjusted[counts.starts[n - 1]] += 1
        return cls.of(counts.table(n), adjusted.astype(np.min_scalar_type(int(adjusted.max()))))

    def discounted(self, rows: Rows | slice, contexts: Rows | slice) -> Probs:
        """Return the share of some rows in their contexts after discounting."""
        counts = self.adjusted[rows].astype(np.int64)
        totals = self.totals[contexts]
        # A context that nothing follows has no shares.
        shares: Probs = (counts - _discounts_of(counts, self.discounts)) / np.maximum(totals, 1)
        return shares


def _discounts_of(counts: NDArray[np.integer], discounts: Discounts) -> Probs:
    by_count: Probs = np.array([0.0, *discounts])[np.minimum(counts, 3)]
    return by_count


def _estimate_discounts(adjusted: NDArray[np.integer]) -> Discounts:
    """Return the discounts that follow from the counts of counts.

    If one of them is negative or undefined, the fallback replaces all three. None is larger than
    its count.
    """
    ones, twos, threes, fours = (int(np.count_nonzero(adjusted == k)) for k in (1, 2, 3, 4))
    if not (ones and twos and threes):
        return FALLBACK_DISCOUNTS
    y = ones / (ones + 2 * twos)
    discounts = 1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes
    return discounts if min(discounts) >= 0 else FALLBACK_DISCOUNTS


class KneserNey(NGramModel):
    """A model of one order.

    The highest order discounts counts; lower orders discount the number of different tokens that
    were seen before an n-gram. Each order has three discounts, for counts of 1, 2, and 3 or more,
    estimated from counts of counts. The unigram interpolates with the uniform distribution.

    With ``unknown="good_turing"``, the unigram also gives ``<unk>`` the share of the words that
    train has only once: so many words were new when they appeared (Good 1953). Like all counts of
    the unigram in a model of a higher order, the share is one of distinct bigrams, because the
    unigram predicts what follows a context for the first time.
    """

    smoothing = "kneser-ney"
    backoff = "lower"
    schema = KneserNeySettings

    def __init__(
        self,
        counts: NgramCounts,
        order: int,
        lower: dict[int, OrderStatistics] | None = None,
        unknown: Unknown = "uniform",
    ) -> None:
        """Prepare the model from counts of at least its order.

        ``lower`` has statistics of lower orders. Models that share it compute each of them once.
        """
        self.order = order
        self.counts = counts
        self.unknown: Unknown = unknown
        self._lower = {} if lower is None else lower

    @cached_property
    def statistics(self) -> list[OrderStatistics]:
        """The statistics of order n, at index n - 1, computed when they are first needed."""
        lower = self._lower
        for n in range(1, self.order):
            if n not in lower:
                lower[n] = OrderStatistics.of_lower(self.counts, n)
        highest = self.counts.table(self.order)
        of_highest = OrderStatistics.of(highest, highest.counts)
        return [*(lower[n] for n in range(1, self.order)), of_highest]

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:
        """Return a model for each order that was counted."""
        lower: dict[int, OrderStatistics] = {}
        return [
            cls(counts, order, lower, settings["unknown"])
            for order in range(1, counts.max_order + 1)
        ]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The treatment of ``<unk>``."""
        return {"unknown": self.unknown}

    @property
    def fallback_orders(self) -> list[int]:
        """The orders with the fallback discounts."""
        return [
            n
            for n, statistics in enumerate(self.statistics, start=1)
            if statistics.discounts == FALLBACK_DISCOUNTS
        ]

    @cached_property
    def unigram(self) -> Probs:
        """The probability of each token without any context."""
        shares, weight = self.terms(1, slice(None), slice(None))
        known: Probs = shares + weight / self.counts.vocab_size
        if self.unknown == "uniform":
            return known
        num_once = int(np.count_nonzero(self.counts.table(1).counts[1:] == 1))
        # Below 1 even if all tokens occur once.
        share = num_once / max(int(self.statistics[0].totals[0]), num_once + 1)
        known *= 1 - share
        known[0] += share
        return known

    def terms(self, n: int, rows: Rows | slice, contexts: Rows | slice) -> tuple[Probs, Probs]:
        """Return the discounted shares, and the weights that the discounts free."""
        statistics = self.statistics[n - 1]
        return statistics.discounted(rows, contexts), statistics.backoffs[contexts]

    def probs_of_rows(self, n: int, rows: slice, below: Probs) -> Probs:
        """Return p of the last token after the others for some n-grams of order n.

        ``below`` has these probabilities of all n-grams of order n - 1.
        """
        if n == 1:
            return self.unigram[rows]
        table = self.counts.table(n)
        shares, weights = self.terms(n, rows, table.split(rows)[0])
        probs: Probs = shares + weights * below[table.suffix_rows[rows]]
        return probs

    def backoff_weights(self, n: int, rows: slice) -> Probs:
        """Return the weights of some n-grams of order n as contexts; those of the highest order
        have none.

        In the backoff form of the model, p of an unseen n-gram is the weight of its context times p
        of the n-gram without its first token.
        """
        return self.statistics[n].backoffs[rows] if n < self.order else np.empty(0)
