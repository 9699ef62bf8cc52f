"""A template for a new smoothing method: absolute discounting (Ney, Essen and Kneser 1994)."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from seqlm.ngrams.counts.count_tables import NgramCounts, Probs, Rows
from seqlm.ngrams.models.base import NGramModel


class AbsoluteDiscounting(NGramModel):
    """A model of one order.

    ``P_n(x | c) = (max(n(c, x) - d, 0) + d t(c) P_{n-1}(x)) / n(c)``, where n(c) is the sum of the counts of the
    context's continuations and t(c) their number. The unigram backs off to 1 / V.
    """

    smoothing = "absolute"
    backoff = "lower"

    def __init__(self, counts: NgramCounts, order: int, discount: float) -> None:
        """Prepare the model from counts of at least its order."""
        self.counts, self.order, self.discount = counts, order, discount

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:
        """Return a model for each order that was counted."""
        return [cls(counts, order, settings["discount"]) for order in range(1, counts.max_order + 1)]

    @property
    def unigram(self) -> Probs:
        """The probability of each token without any context."""
        shares, weight = self.terms(1, slice(None), slice(None))
        return shares + weight / self.counts.vocab_size

    def terms(self, n: int, rows: Rows | slice, contexts: Rows | slice) -> tuple[Probs, Probs]:
        """Return the discounted shares, and the weights that the discounts free."""
        table = self.counts.table(n)
        totals = table.context_totals[contexts].astype(float)
        types = table.sum_by_context(lambda some: (table.counts[some] > 0).astype(int))[contexts]
        seen = (table.counts[rows] - self.discount).clip(0)
        totals[totals == 0] = 1  # the n-gram that ends the text may be a context that nothing follows
        weights: Probs = self.discount * types / totals
        weights[types == 0] = 1
        return seen / totals, weights
