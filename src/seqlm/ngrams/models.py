"""n-gram language models: uniform, Laplace smoothing, interpolated modified Kneser-Ney.

Every model is a proper distribution over the whole vocabulary, ``<unk>`` included. At
the start of a stream, where the context is shorter than the model's order, the model of
the order that fits predicts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.count_tables import Counts, Ids, Rows

Probs = NDArray[np.float64]
Counted = NDArray[np.int64] | Probs
Backoff = Literal["unigram", "lower"]


class NGramModel(Protocol):
    """What every model of this module can do."""

    @property
    def order(self) -> int:
        """Tokens that an n-gram of this model spans; 0 for the uniform model."""
        ...

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N of a stream, each given those before it; shape ``(N - 1,)``."""
        ...

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``; shape ``(V,)``."""
        ...


def nats(model: NGramModel, ids: Ids) -> Probs:
    """Return -log p of tokens 2..N of a stream; infinite where a model gives no chance."""
    with np.errstate(divide="ignore"):
        return -np.log(model.probs(ids))


@dataclass(frozen=True)
class Uniform:
    """Every token is equally likely."""

    vocab_size: int
    order: int = 0

    def probs(self, ids: Ids) -> Probs:
        """Return 1 / V for tokens 2..N."""
        return np.full(max(len(ids) - 1, 0), 1 / self.vocab_size)

    def next_distribution(self, context: Ids) -> Probs:  # noqa: ARG002 (the context does not matter)
        """Return 1 / V for every token."""
        return np.full(self.vocab_size, 1 / self.vocab_size)


@dataclass(frozen=True)
class Laplace:
    """Laplace smoothing (8.3.5), for any order.

    ``P(x | c) = (n(c, x) + e_n P_back(x)) / (n(c) + e_n)`` where n(c) sums the counts of
    the context's continuations. ``backoff="unigram"`` is the book's: P_back is P(x) at
    every order; ``"lower"`` takes the next lower order instead. The unigram backs off to
    1 / m. For a context that was never seen, P is P_back, which is also the limit for
    epsilon -> 0.
    """

    counts: Counts
    order: int
    epsilons: tuple[float, ...]
    """e_1 to e_order."""
    backoff: Backoff

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N."""
        return self.probs_at(self.counts.rows_of(ids, self.order))

    def probs_at(self, rows: list[Rows]) -> Probs:
        """Return p of tokens 2..N of a stream whose rows :meth:`Counts.rows_of` gave."""
        table = self.counts.table(1)
        result = self._smooth(
            1, table.counts[rows[0][1:]], self.counts.context_totals[0][0], 1 / self.counts.vocab_size
        )
        unigram = result
        for n in range(2, self.order + 1):
            # The n-gram at place i predicts token i + n - 1, which is entry i + n - 2.
            context, gram = rows[n - 2][: len(rows[n - 1])], rows[n - 1]
            seen = np.where(gram >= 0, self.counts.table(n).counts[gram], 0)
            totals = np.where(context >= 0, self.counts.context_totals[n - 1][context], 0)
            back = unigram if self.backoff == "unigram" else result
            result = result.copy()
            result[n - 2 :] = self._smooth(n, seen, totals, back[n - 2 :])
        return result

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``."""
        counts = self.counts
        vocab_size = counts.vocab_size
        unigram = result = self._smooth(1, counts.table(1).counts, counts.context_totals[0][0], 1 / vocab_size)
        for n in range(2, min(self.order, len(context) + 1) + 1):
            row = counts.rows_of(context[len(context) - n + 1 :], n - 1)[-1][0]
            if row < 0:
                if self.backoff == "unigram":
                    result = unigram
                continue
            seen = np.zeros(vocab_size)
            tokens, rows = counts.children(n, row)
            seen[tokens] = counts.table(n).counts[rows]
            back = unigram if self.backoff == "unigram" else result
            result = self._smooth(n, seen, counts.context_totals[n - 1][row], back)
        return result

    def _smooth(self, order: int, seen: Counted, totals: Counted | np.int64, back: Probs | float) -> Probs:
        epsilon = self.epsilons[order - 1]
        denominators = np.asarray(totals, np.float64) + epsilon
        with np.errstate(invalid="ignore", divide="ignore"):
            # The share of what is mixed in, not epsilon times it, which could be too small a number.
            smoothed = seen / denominators + epsilon / denominators * back
        return np.where(denominators > 0, smoothed, back)


def tune_epsilons(
    counts: Counts, val_ids: Ids, order: int, backoff: Backoff
) -> tuple[tuple[float, ...], list[tuple[int, float, float]]]:
    """Choose each order's epsilon on val, or on its first million tokens, from the lowest order up.

    Returns the epsilons and the curve: rows of order, epsilon, val perplexity.
    """
    chosen: tuple[float, ...] = ()
    curve = []
    rows = counts.rows_of(val_ids[:_MAX_TUNING_TOKENS], order)
    for n in range(1, order + 1):
        scores = []
        for epsilon in _EPSILON_GRID:
            with np.errstate(divide="ignore"):
                surprisals = -np.log(Laplace(counts, n, (*chosen, float(epsilon)), backoff).probs_at(rows))
            scores.append(float(np.exp(surprisals.mean())))
        curve += [(n, float(epsilon), score) for epsilon, score in zip(_EPSILON_GRID, scores, strict=True)]
        chosen += (float(_EPSILON_GRID[int(np.argmin(scores))]),)
    return chosen, curve


_MAX_TUNING_TOKENS = 1_000_000
_EPSILON_GRID = np.logspace(-3, 5, 49)

FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""For orders whose counts of counts give no valid discounts, as in common practice."""


class KneserNey:
    """Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3).

    The highest order discounts counts; lower orders discount the number of different
    tokens that were seen before an n-gram. Each order has three discounts, for counts of
    1, 2, and 3 or more, estimated from counts of counts; the unigram interpolates with
    the uniform distribution.
    """

    def __init__(self, counts: Counts, order: int) -> None:
        """Prepare the model of one order from counts of at least that order."""
        self.order = order
        self.counts = counts
        self.fallback_orders: list[int] = []
        """Orders whose discounts could not be estimated."""
        self.discounts: list[tuple[float, float, float]] = []
        self._discounted: list[Probs] = []
        self._backoffs: list[Probs] = []
        for n in range(1, order + 1):
            self._prepare(n, self._adjusted(n))

    def _adjusted(self, n: int) -> NDArray[np.int64]:
        """Return counts for the highest order, continuation counts below."""
        table = self.counts.table(n)
        if n == self.order:
            return table.counts
        adjusted = np.bincount(self.counts.suffixes(n + 1), minlength=len(table.keys)).astype(np.int64)
        # The n-gram that begins the text follows the text's border, which counts as a token of its own.
        adjusted[self.counts.starts[n - 1]] += 1
        return adjusted

    def _prepare(self, n: int, adjusted: NDArray[np.int64]) -> None:
        discounts = self._estimate(n, adjusted)
        per_row = np.array([0.0, *discounts])[np.minimum(adjusted, 3)]
        num_contexts = 1 if n == 1 else len(self.counts.table(n - 1).keys)
        contexts = np.zeros(len(adjusted), np.int64) if n == 1 else self.counts.prefixes(n)
        totals = np.bincount(contexts, weights=adjusted, minlength=num_contexts)
        freed = np.bincount(contexts, weights=per_row, minlength=num_contexts)
        with np.errstate(invalid="ignore"):
            # A context that was never continued leaves everything to the order below.
            self._backoffs.append(np.where(totals > 0, freed / totals, 1.0))
            self._discounted.append(np.nan_to_num((adjusted - per_row) / totals[contexts]))

    def _estimate(self, n: int, adjusted: NDArray[np.int64]) -> tuple[float, float, float]:
        ones, twos, threes, fours = (int(np.count_nonzero(adjusted == k)) for k in (1, 2, 3, 4))
        discounts = FALLBACK_DISCOUNTS
        if min(ones, twos, threes) > 0:
            y = ones / (ones + 2 * twos)
            found = (1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes)
            if all(0 <= discount <= most for discount, most in zip(found, (1, 2, 3), strict=True)):
                discounts = found
        if discounts is FALLBACK_DISCOUNTS:
            self.fallback_orders.append(n)
        self.discounts.append(discounts)
        return discounts

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N."""
        rows = self.counts.rows_of(ids, self.order)
        result: Probs = self._discounted[0][rows[0][1:]] + self._backoffs[0][0] / self.counts.vocab_size
        for n in range(2, self.order + 1):
            context, gram = rows[n - 2][: len(rows[n - 1])], rows[n - 1]
            discounted = np.where(gram >= 0, self._discounted[n - 1][gram], 0.0)
            backoff = np.where(context >= 0, self._backoffs[n - 1][context], 1.0)
            result[n - 2 :] = discounted + backoff * result[n - 2 :]
        return result

    def listed(self) -> Iterator[tuple[Probs, Probs | None]]:
        """Yield for each order p of every row's last token after its others, and the rows' weights as contexts.

        The weights are those of the backoff form of the model: p of an n-gram that was not
        seen is the weight of its context times p of the n-gram without its first token.
        """
        below: Probs = self._discounted[0] + self._backoffs[0][0] / self.counts.vocab_size
        for n in range(1, self.order + 1):
            if n > 1:
                suffixes = self.counts.suffixes(n)
                below = self._discounted[n - 1] + self._backoffs[n - 1][self.counts.prefixes(n)] * below[suffixes]
            yield below, self._backoffs[n] if n < self.order else None

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``."""
        counts = self.counts
        result: Probs = self._discounted[0] + self._backoffs[0][0] / counts.vocab_size
        for n in range(2, min(self.order, len(context) + 1) + 1):
            row = counts.rows_of(context[len(context) - n + 1 :], n - 1)[-1][0]
            if row < 0:
                continue
            result = self._backoffs[n - 1][row] * result
            tokens, rows = counts.children(n, row)
            result[tokens] += self._discounted[n - 1][rows]
        return result


def build_models(counts: Counts, laplace_epsilons: tuple[float, ...], backoff: Backoff) -> dict[str, NGramModel]:
    """Return every model that the counts allow, by name: uniform, laplace-N, kneser-ney-N."""
    models: dict[str, NGramModel] = {"uniform": Uniform(counts.vocab_size)}
    for order in range(1, len(laplace_epsilons) + 1):
        models[f"laplace-{order}"] = Laplace(counts, order, laplace_epsilons[:order], backoff)
    for order in range(1, counts.max_order + 1):
        models[f"kneser-ney-{order}"] = KneserNey(counts, order)
    return models
