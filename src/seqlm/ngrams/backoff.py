"""The backoff form of n-gram models: a probability for each n-gram that is listed, and a weight for each context.

An n-gram that is not listed has the weight of its context times the probability of the n-gram without its first token.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs, Rows


@dataclass(frozen=True, eq=False)
class BackoffTables:
    """The n-grams of each order, with their probabilities and weights."""

    counts: NgramCounts
    """The n-grams of each order. Their counts are not used."""
    listed: list[NDArray[np.floating]]
    """The probabilities of the n-grams of order n, at index n - 1."""
    backoffs: list[NDArray[np.floating]]
    """Their weights as contexts; 1 at the highest order."""

    def probs(self, ids: Ids, places: Rows | None = None) -> Probs:
        """Return p of tokens 2..N of a stream, each given those before it; shape ``(N - 1,)``.

        ``places``: the place of each token in its text, if several texts follow one another.
        """
        result = self.listed[0][ids[1:]].astype(np.float64)
        for n, contexts, rows in self.counts.lookups(ids, self.counts.max_order):
            weights = np.where(contexts >= 0, self.backoffs[n - 2][contexts], 1.0)
            found = np.where(rows >= 0, self.listed[n - 1][rows], weights * result[n - 2 :])
            result[n - 2 :] = found if places is None else np.where(places[n - 1 :] >= n - 1, found, result[n - 2 :])
        return result

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``; shape ``(V,)``."""
        result = self.listed[0].astype(np.float64)
        for n, row in self.counts.context_rows(context, self.counts.max_order):
            if row >= 0:
                tokens, rows = self.counts.table(n).continuations(row)
                result *= self.backoffs[n - 2][row]
                result[tokens] = self.listed[n - 1][rows]
        return result

    def probs_of_rows(self, n: int, rows: slice, below: Probs) -> Probs:  # noqa: ARG002 (others compute with it)
        """Return p of some n-grams of order n, by their rows."""
        return self.listed[n - 1][rows].astype(np.float64)

    def backoff_weights(self, n: int, rows: slice) -> Probs:
        """Return the weights of some n-grams of order n as contexts; those of the highest order have none."""
        return self.backoffs[n - 1][rows].astype(np.float64) if n < self.counts.max_order else np.empty(0)
