"""Settings of the ``score`` stage."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section

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


class ScoreParams(Section):
    """What is scored."""

    max_tokens: Annotated[int, Field(ge=1_000, le=10**9)]
    """Most tokens of a split that a model scores: of a longer one it scores passages, the same text for every model."""
    dynamic: DynamicParams | None
    """Also evaluate the runs that saw all of train dynamically; null: not."""
