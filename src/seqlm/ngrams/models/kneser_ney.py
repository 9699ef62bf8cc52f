"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3).

A model holds no probability: each is worked out from whole numbers when it is asked for, so
that tables of tens of millions of n-grams, which may lie in files, need little memory.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, Counts, Ids, Probs, Rows
from seqlm.ngrams.counts.parallel import for_each

Discounts = tuple[float, float, float]

FALLBACK_DISCOUNTS: Discounts = (0.5, 1.0, 1.5)
"""For orders whose counts of counts give no valid discounts, as in common practice."""
_CONTEXT_OF_ALL = slice(0, 1)


@dataclass(frozen=True)
class _Level:
    """One order of a model: all that its probabilities follow from."""

    adjusted: NDArray[np.integer]
    """For each row of the order its count or, below the highest order, the number of tokens seen before it."""
    totals: NDArray[np.integer]
    """For each context the sum of its continuations' adjusted counts."""
    backoffs: Probs
    """For each context the weight of the order below."""
    discounts: Discounts
    is_fallback: bool
    """Whether the discounts could not be estimated."""

    def discounted(self, rows: Rows | slice, contexts: Rows | slice) -> Probs:
        """Return the share of some rows in their contexts after discounting."""
        counts = self.adjusted[rows].astype(np.int64)
        totals = self.totals[contexts].astype(np.float64)
        shares: Probs = counts - _discount_of(counts, self.discounts)
        # A context that nothing follows shares nothing out.
        return np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)


def _discount_of(counts: NDArray[np.int64], discounts: Discounts) -> Probs:
    return np.array([0.0, *discounts])[np.minimum(counts, 3)]


class Levels:
    """The orders of Kneser-Ney models over the same counts, which share them."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._made: dict[tuple[int, bool], _Level] = {}

    def get(self, n: int, *, is_highest: bool) -> _Level:
        """Return order n of a model whose highest order it is, or of one with higher orders."""
        if (n, is_highest) not in self._made:
            adjusted = self._counts.table(n).counts if is_highest else self._continuations(n)
            self._made[n, is_highest] = self._level(n, adjusted)
        return self._made[n, is_highest]

    def _continuations(self, n: int) -> NDArray[np.integer]:
        """Return for each row of an order the number of different tokens that were seen before it."""
        counts = self._counts
        table = counts.table(n)
        found = np.zeros(len(table), np.int64)
        suffixes, at_once = counts.suffixes(n + 1), max(BLOCK_ROWS, len(table))
        for start in range(0, len(suffixes), at_once):
            found += np.bincount(suffixes[start : start + at_once], minlength=len(table))
        # The n-gram that begins the text follows the text's border, which counts as a token of its own.
        found[counts.starts[n - 1]] += 1
        return found.astype(np.min_scalar_type(int(found.max())))

    def _level(self, n: int, adjusted: NDArray[np.integer]) -> _Level:
        discounts = _estimated(adjusted)
        used = discounts or FALLBACK_DISCOUNTS
        num_contexts = 1 if n == 1 else len(self._counts.table(n - 1))
        totals, backoffs = np.zeros(num_contexts, np.int64), np.ones(num_contexts)

        def sum_up(rows: slice) -> None:
            counts = adjusted[rows].astype(np.int64)
            contexts = np.zeros(len(counts), np.int64) if n == 1 else self._counts.prefixes(n, rows)
            first, last = int(contexts[0]), int(contexts[-1]) + 1
            sums = np.bincount(contexts - first, weights=counts, minlength=last - first)
            freed = np.bincount(contexts - first, weights=_discount_of(counts, used), minlength=last - first)
            totals[first:last] = sums
            with np.errstate(invalid="ignore"):
                # A context that was never continued leaves everything to the order below.
                backoffs[first:last] = np.where(sums > 0, freed / sums, 1.0)

        for_each(sum_up, [slice(None)] if n == 1 else self._counts.blocks(n))
        return _Level(adjusted, totals.astype(np.min_scalar_type(int(totals.max()))), backoffs, used, discounts is None)


def _estimated(adjusted: NDArray[np.integer]) -> Discounts | None:
    """Return the discounts that the counts of counts give, where they give valid ones."""
    ones, twos, threes, fours = (int(np.count_nonzero(adjusted == k)) for k in (1, 2, 3, 4))
    if min(ones, twos, threes) == 0:
        return None
    y = ones / (ones + 2 * twos)
    found = (1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes)
    return found if all(0 <= discount <= most for discount, most in zip(found, (1, 2, 3), strict=True)) else None


class KneserNey:
    """A model of one order.

    The highest order discounts counts; lower orders discount the number of different
    tokens that were seen before an n-gram. Each order has three discounts, for counts of
    1, 2, and 3 or more, estimated from counts of counts; the unigram interpolates with
    the uniform distribution.
    """

    smoothing = "kneser-ney"

    def __init__(self, counts: Counts, order: int, levels: Levels | None = None) -> None:
        """Prepare the model of one order from counts of at least that order; ``levels`` is what models share."""
        self.order = order
        self.counts = counts
        shared = levels or Levels(counts)
        self._levels = [shared.get(n, is_highest=n == order) for n in range(1, order + 1)]

    @property
    def discounts(self) -> list[Discounts]:
        """For order n at place n - 1 its discounts."""
        return [level.discounts for level in self._levels]

    @property
    def fallback_orders(self) -> list[int]:
        """Orders whose discounts could not be estimated."""
        return [n for n, level in enumerate(self._levels, start=1) if level.is_fallback]

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N."""
        rows = self.counts.rows_of(ids, self.order)
        result: Probs = self._unigram[rows[0][1:]]
        for n, level in enumerate(self._levels[1:], start=2):
            context, gram = rows[n - 2][: len(rows[n - 1])], rows[n - 1]
            discounted = np.where(gram >= 0, level.discounted(gram, context), 0.0)
            backoff = np.where(context >= 0, level.backoffs[context], 1.0)
            result[n - 2 :] = discounted + backoff * result[n - 2 :]
        return result

    @cached_property
    def _unigram(self) -> Probs:
        """The probability of each token without any context."""
        level = self._levels[0]
        found: Probs = level.discounted(slice(None), _CONTEXT_OF_ALL) + level.backoffs[0] / self.counts.vocab_size
        return found

    def probs_of_rows(self, n: int, rows: slice, below: Probs) -> Probs:
        """Return p of the last token of some n-grams of order n after the others; ``below`` has it for all of n - 1."""
        if n == 1:
            return self._unigram[rows]
        level, contexts = self._levels[n - 1], self.counts.prefixes(n, rows)
        found: Probs = level.discounted(rows, contexts)
        found += level.backoffs[contexts] * below[self.counts.suffixes(n)[rows]]
        return found

    def weights_of_rows(self, n: int, rows: slice) -> Probs | None:
        """Return the weights of some n-grams as contexts in the backoff form of the model; the highest order has none.

        There p of an n-gram that was not seen is the weight of its context times p of the n-gram
        without its first token.
        """
        return self._levels[n].backoffs[rows] if n < self.order else None

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``."""
        counts = self.counts
        result = self._unigram.copy()
        for n in range(2, min(self.order, len(context) + 1) + 1):
            row = int(counts.rows_of(context[len(context) - n + 1 :], n - 1)[-1][0])
            if row < 0:
                continue
            level = self._levels[n - 1]
            result = level.backoffs[row] * result
            tokens, rows = counts.children(n, row)
            result[tokens] += level.discounted(rows, slice(row, row + 1))
        return result
