"""Laplace smoothing (8.3.5), for any order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from seqlm.ngrams.counts.count_tables import NgramCounts, Probs, Rows
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.settings import LaplaceSettings


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
        shares, weight = self.terms(1, slice(None), slice(None))
        return shares + weight * (1 / self.counts.vocab_size)

    def terms(self, n: int, rows: Rows | slice, contexts: Rows | slice) -> tuple[Probs, Probs]:
        """Return n(c, x) / (n(c) + e_n) and e_n / (n(c) + e_n)."""
        table, epsilon = self.counts.table(n), self.epsilons[n - 1]
        seen, sums = table.counts[rows], table.context_totals[contexts] + epsilon
        shares, weights = np.zeros(np.broadcast_shapes(seen.shape, sums.shape)), np.ones(sums.shape)
        np.divide(seen, sums, out=shares, where=sums > 0)
        return shares, np.divide(epsilon, sums, out=weights, where=sums > 0)
