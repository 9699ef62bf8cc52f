"""What every n-gram language model offers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs, Rows


class NGramModel(ABC):
    """An n-gram language model: a proper distribution over the whole vocabulary, ``<unk>``
    included.

    It mixes each order with what it backs off to: ``P_n(x | c) = share_n(c, x) + weight_n(c)
    P_back(x)``. An n-gram that was never seen has share 0, and a context that was never seen has
    weight 1. At the start of a stream, where the context is shorter than the model's order, the
    model of the order that fits predicts. Each subclass is one smoothing method.
    """

    smoothing: ClassVar[str]
    """The name of the smoothing method."""
    backoff: ClassVar[Literal["unigram", "lower"]]
    """What P_back is: the unigram, or the next lower order."""
    counts: NgramCounts
    order: int
    """Tokens that an n-gram of this model spans; 0 for the uniform model."""
    chosen_on_val: bool = False
    """Whether settings of the model were chosen on val."""
    schema: ClassVar[Any] = dict[str, Any]
    """The type of stored settings."""

    @property
    def name(self) -> str:
        """The smoothing and the order."""
        return f"{self.smoothing}-{self.order}" if self.order else self.smoothing

    @property
    def settings(self) -> Mapping[str, Any]:
        """What :meth:`build` made the model with."""
        return {}

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:
        """Return the models of this method, the lowest order first; ``settings`` are what is
        stored of it."""
        raise NotImplementedError  # a model that another program made is read from a file

    @property
    @abstractmethod
    def unigram(self) -> Probs:
        """The probability of each token without any context; shape ``(V,)``."""

    def terms(self, n: int, rows: Rows | slice, contexts: Rows | slice) -> tuple[Probs, Probs]:
        """Return the shares of some n-grams of order n, by their rows, and the weights of their
        contexts."""
        raise NotImplementedError  # the uniform model mixes no order

    def probs(self, ids: Ids, positions: Rows | None = None) -> Probs:
        """Return p of tokens 2..N of a stream, each given those before it; shape ``(N - 1,)``.

        ``positions``: the position of each token in its text, if several follow one another.
        """
        unigram = result = self.unigram[ids[1:]]
        for n, contexts, rows in self.counts.lookups(ids, self.order):
            shares, weights = self.terms(n, rows, contexts)
            back = unigram if self.backoff == "unigram" else result
            mixed = self.combine(
                rows >= 0, shares, np.where(contexts >= 0, weights, 1.0) * back[n - 2 :]
            )
            if positions is not None:
                mixed = np.where(positions[n - 1 :] >= n - 1, mixed, result[n - 2 :])
            result = np.concatenate([result[: n - 2], mixed])
        return result

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``; shape ``(V,)``."""
        result = self.unigram
        for n in range(2, min(self.order, len(context) + 1) + 1):
            row = int(self.counts.rows_of(context[len(context) - n + 1 :], n - 1)[-1][0])
            result = self.unigram if self.backoff == "unigram" else result
            if row >= 0:
                tokens, rows = self.counts.table(n).continuations(row)
                shares, is_seen = np.zeros_like(result), np.zeros(len(result), bool)
                shares[tokens], weight = self.terms(n, rows, slice(row, row + 1))
                is_seen[tokens] = True
                result = self.combine(is_seen, shares, weight * result)
        return result.copy()

    def combine(self, is_seen: NDArray[np.bool_], shares: Probs, backed_off: Probs) -> Probs:
        """Return p of n-grams from their shares and the weighted P_back."""
        probs: Probs = np.where(is_seen, shares, 0.0) + backed_off
        return probs


@dataclass(frozen=True)
class Uniform(NGramModel):
    """Every token is equally likely, whatever the counts."""

    smoothing = "uniform"
    backoff = "unigram"

    counts: NgramCounts
    order: int = 0

    @property
    def unigram(self) -> Probs:
        """1 / V for every token."""
        return np.full(self.counts.vocab_size, 1 / self.counts.vocab_size)

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:  # noqa: ARG003
        """Return the one model."""
        return [cls(counts)]


def token_nll(model: NGramModel, ids: Ids, positions: Rows | None = None) -> Probs:
    """Return -log p of tokens 2..N of a stream, shape ``(N - 1,)``; infinite for a token of
    probability 0. ``positions`` are those of :meth:`NGramModel.probs`."""
    return -log(model.probs(ids, positions))
