"""Settings of the ``ngrams`` stages."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section
from seqlm.vocab.settings import Kind, Order, require_every_kind

Backoff = Literal["unigram", "lower"]
Unknown = Literal["good_turing", "uniform"]
Epsilon = Annotated[float, Field(ge=0, le=1e12)]


class LaplaceParams(Section):
    """Laplace smoothing (8.3.5)."""

    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=100)] | Literal["auto"]
    """e_1, e_2, ...: one for each order that is smoothed; ``auto`` chooses them on val."""
    backoff: Backoff
    """What is mixed in: P(x), as in the book, or the next lower order."""
    max_order: Order
    """Highest order of the Laplace models."""

    @model_validator(mode="after")
    def _one_each(self) -> "LaplaceParams":
        if self.epsilons != "auto" and len(self.epsilons) < self.max_order:
            raise ValueError(f"epsilons must hold one value for each order up to max_order = {self.max_order}")
        return self


class NgramsParams(Section):
    """What is counted and how it is smoothed."""

    max_order: dict[Kind, Order]
    """Highest order that is counted, for each kind of token."""
    laplace: LaplaceParams
    unknown: Unknown
    """How likely ``<unk>`` is in Kneser-Ney models: ``good_turing``: as all tokens together that train has once (Good
    1953); ``uniform``: as any token that train lacks, which is KenLM's way."""
    memory: Annotated[int, Field(ge=2**28, le=2**50)]
    """Bytes that counting may take; a text that needs more is counted in chunks, on disk."""
    zipf_min_count: Annotated[int, Field(ge=1, le=10**9)]
    """Zipf's law is fitted to the n-grams that occur at least this often."""
    num_frequent: Annotated[int, Field(ge=1, le=100_000)]
    """Rows of the tables of the most frequent n-grams."""

    @model_validator(mode="after")
    def _orders_fit(self) -> "NgramsParams":
        require_every_kind("max_order", self.max_order)
        if self.laplace.max_order > min(self.max_order.values()):
            raise ValueError("laplace.max_order must not exceed max_order of any kind of token")
        return self
