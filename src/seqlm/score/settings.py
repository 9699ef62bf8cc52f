"""Settings of the ``score`` stage."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from seqlm.core.settings import Section
from seqlm.ngrams.settings import Order, require_every_kind
from seqlm.vocab.settings import Kind

LearningRate = Annotated[float, Field(gt=0, le=1e3)]


class DynamicParams(Section):
    """Dynamic evaluation: the model learns on from text that it has predicted."""

    rule: Literal["sgd", "rms"]
    """How it learns: by clipped SGD, or by gradients over their root mean squares, with a pull back."""
    lrs: Annotated[list[LearningRate], Field(min_length=1, max_length=50)]
    """Learning rates to choose from, on val."""
    decays: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=50)]
    """Of rms: shares of the way back to the trained weights to choose from, on val."""
    every: Annotated[int, Field(ge=1, le=100_000)]
    """Tokens between two steps."""
    clip: Annotated[float, Field(gt=0, le=1e9)]
    """Of sgd: largest norm of a step's gradient."""
    segments: Annotated[int, Field(ge=1, le=1_000_000)]
    """Of rms: segments of train whose gradients give the root mean squares."""


class DynamicCountsParams(Section):
    """Dynamic counts: a Kneser-Ney model of each kind of token that goes on counting the text it has predicted."""

    order: dict[Kind, Order]
    """Of the model, for each kind of token."""
    num_times: Annotated[int, Field(ge=1, le=100_000)]
    """Times in a split that all is counted anew with the text so far."""
    max_tokens: Annotated[int, Field(ge=0, le=10**9)]
    """Most tokens of train: of longer ones, which take long to count again and again, there is no such model."""

    @field_validator("order")
    @classmethod
    def _one_each(cls, order: dict[Kind, int]) -> dict[Kind, int]:
        require_every_kind("order", order)
        return order

    def order_for(self, kind: Kind, num_tokens: int) -> int:
        """Return the order of the model of one kind of token; a shorter train has no longer n-grams than itself."""
        return min(self.order[kind], num_tokens)


class ScoreParams(Section):
    """What is scored."""

    max_tokens: Annotated[int, Field(ge=1_000, le=10**9)]
    """Most tokens of a split that a model scores: of a longer one it scores passages, the same text for every model."""
    by_characters: Annotated[int, Field(ge=0, le=10**9)]
    """The model over words is also scored as one over characters, where train has at most so many words."""
    dynamic: DynamicParams | None
    """Also evaluate the runs that saw all of train dynamically; null: not."""
    dynamic_counts: DynamicCountsParams | None
    """Also score a model of each kind of token that goes on counting; null: not."""
