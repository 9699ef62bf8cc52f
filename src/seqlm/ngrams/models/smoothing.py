"""n-gram language models: uniform, Laplace smoothing, interpolated modified Kneser-Ney.

Every model is a proper distribution over the whole vocabulary, ``<unk>`` included. At
the start of a stream, where the context is shorter than the model's order, the model of
the order that fits predicts.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from seqlm.ngrams.counts.count_tables import Counts, Ids, Probs
from seqlm.ngrams.models.kneser_ney import FALLBACK_DISCOUNTS as FALLBACK_DISCOUNTS
from seqlm.ngrams.models.kneser_ney import KneserNey as KneserNey
from seqlm.ngrams.models.kneser_ney import Levels
from seqlm.ngrams.models.laplace import Backoff as Backoff
from seqlm.ngrams.models.laplace import Laplace as Laplace
from seqlm.ngrams.models.laplace import tune_epsilons as tune_epsilons


class NGramModel(Protocol):
    """What every model of this module can do."""

    @property
    def smoothing(self) -> str:
        """The name of the smoothing method."""
        ...

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

    smoothing: ClassVar[str] = "uniform"
    vocab_size: int
    order: int = 0

    def probs(self, ids: Ids) -> Probs:
        """Return 1 / V for tokens 2..N."""
        return np.full(max(len(ids) - 1, 0), 1 / self.vocab_size)

    def next_distribution(self, context: Ids) -> Probs:  # noqa: ARG002 (the context does not matter)
        """Return 1 / V for every token."""
        return np.full(self.vocab_size, 1 / self.vocab_size)


def build_models(counts: Counts, laplace_epsilons: tuple[float, ...], backoff: Backoff) -> dict[str, NGramModel]:
    """Return every model that the counts allow, by name: uniform, laplace-N, kneser-ney-N."""
    models: dict[str, NGramModel] = {"uniform": Uniform(counts.vocab_size)}
    for order in range(1, len(laplace_epsilons) + 1):
        models[f"laplace-{order}"] = Laplace(counts, order, laplace_epsilons[:order], backoff)
    levels = Levels(counts)
    for order in range(1, counts.max_order + 1):
        models[f"kneser-ney-{order}"] = KneserNey(counts, order, levels)
    return models
