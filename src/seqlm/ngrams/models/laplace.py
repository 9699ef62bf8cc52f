"""Laplace smoothing (8.3.5), for any order, and the choice of its epsilons on val."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Counts, Ids, Probs, Rows

Backoff = Literal["unigram", "lower"]

_MAX_TUNING_TOKENS = 250_000
_EPSILON_GRID = np.logspace(-3, 5, 49)
_BLOCK = 1 << 14
"""Tokens that are smoothed at once while epsilons are tried, so that they stay in the processor's cache."""


@dataclass(frozen=True)
class Laplace:
    """A model of one order.

    ``P(x | c) = (n(c, x) + e_n P_back(x)) / (n(c) + e_n)`` where n(c) sums the counts of
    the context's continuations. ``backoff="unigram"`` is the book's: P_back is P(x) at
    every order; ``"lower"`` takes the next lower order instead. The unigram backs off to
    1 / m. For a context that was never seen, P is P_back, which is also the limit for
    epsilon -> 0.
    """

    smoothing: ClassVar[str] = "laplace"
    counts: Counts
    order: int
    epsilons: tuple[float, ...]
    """e_1 to e_order."""
    backoff: Backoff

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N."""
        rows = self.counts.rows_of(ids, self.order)
        steps = _Steps(self.counts, rows, self.backoff)
        for n in range(1, self.order + 1):
            steps.take(n, self.epsilons[n - 1])
        return steps.probs

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``."""
        counts = self.counts
        vocab_size = counts.vocab_size
        back = np.full(vocab_size, 1 / vocab_size)
        unigram = result = _smoothed(counts.table(1).counts, counts.context_totals[0], back, self.epsilons[0])
        for n in range(2, min(self.order, len(context) + 1) + 1):
            row = int(counts.rows_of(context[len(context) - n + 1 :], n - 1)[-1][0])
            if row < 0:
                if self.backoff == "unigram":
                    result = unigram
                continue
            seen = np.zeros(vocab_size)
            tokens, rows = counts.children(n, row)
            seen[tokens] = counts.table(n).counts[rows]
            back = unigram if self.backoff == "unigram" else result
            result = _smoothed(seen, counts.context_totals[n - 1][row : row + 1], back, self.epsilons[n - 1])
        return result


def tune_epsilons(
    counts: Counts, val_ids: Ids, order: int, backoff: Backoff
) -> tuple[tuple[float, ...], list[tuple[int, float, float]]]:
    """Choose each order's epsilon on val, or on its first quarter of a million tokens, from the lowest order up.

    Returns the epsilons and the curve: rows of order, epsilon, val perplexity.
    """
    steps = _Steps(counts, counts.rows_of(val_ids[:_MAX_TUNING_TOKENS], order), backoff)
    chosen: tuple[float, ...] = ()
    curve = []
    for n in range(1, order + 1):
        scores = steps.try_all(n, _EPSILON_GRID)
        curve += [(n, float(epsilon), score) for epsilon, score in zip(_EPSILON_GRID, scores, strict=True)]
        chosen += (float(_EPSILON_GRID[int(np.argmin(scores))]),)
        steps.take(n, chosen[-1])
    return chosen, curve


class _Steps:
    """Probabilities of tokens 2..N of a stream, one order after another."""

    def __init__(self, counts: Counts, rows: list[Rows], backoff: Backoff) -> None:
        self._counts = counts
        self._rows = rows
        """As :meth:`Counts.rows_of` gives them."""
        self._backoff = backoff
        self.probs = self._unigram = np.full(max(len(rows[0]) - 1, 0), 1 / counts.vocab_size)
        """Of the order that was taken last; at first uniform."""

    def take(self, n: int, epsilon: float) -> None:
        """Go on to order n."""
        start, seen, totals, back = self._terms(n)
        probs = self.probs.copy()
        probs[start:] = _smoothed(seen, totals, back, epsilon)
        self.probs = probs
        if n == 1:
            self._unigram = probs

    def try_all(self, n: int, epsilons: Probs) -> list[float]:
        """Return the perplexity that going on to order n would have with each epsilon."""
        start, seen, totals, back = self._terms(n)
        probs, scores = self.probs.copy(), []
        for epsilon in epsilons.tolist():
            for first in range(0, len(seen), _BLOCK):
                block = slice(first, first + _BLOCK)
                probs[start:][block] = _smoothed(seen[block], totals[block], back[block], epsilon)
            with np.errstate(divide="ignore"):
                scores.append(float(np.exp(-np.log(probs).mean())))
        return scores

    def _terms(self, n: int) -> tuple[int, NDArray[Any], NDArray[Any], Probs]:
        """Return what order n mixes: the first token it predicts, and for each the counts and what it backs off to."""
        counts, rows = self._counts, self._rows
        if n == 1:
            seen = counts.table(1).counts[rows[0][1:]]
            return 0, seen, np.broadcast_to(counts.context_totals[0], seen.shape), self.probs
        # The n-gram at place i predicts token i + n - 1, which is entry i + n - 2.
        context, gram = rows[n - 2][: len(rows[n - 1])], rows[n - 1]
        seen = np.where(gram >= 0, counts.table(n).counts[gram], 0)
        totals = np.where(context >= 0, counts.context_totals[n - 1][context], 0)
        back = self._unigram if self._backoff == "unigram" else self.probs
        return n - 2, seen, totals, back[n - 2 :]


def _smoothed(seen: NDArray[Any], totals: NDArray[np.int64], back: Probs, epsilon: float) -> Probs:
    denominators = totals.astype(np.float64) + epsilon
    with np.errstate(invalid="ignore", divide="ignore"):
        # The share of what is mixed in, not epsilon times it, which could be too small a number.
        smoothed = seen / denominators + epsilon / denominators * back
    return np.where(denominators > 0, smoothed, back)
