"""Settings of the ``evaluate`` stage."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.params.loading import Section

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


class EvaluateParams(Section):
    """What is scored beside the plain models, and what is shown of it."""

    mixtures: bool
    """Also mix the run that is best on val with the n-gram model that is best on val."""
    dynamic: DynamicParams | None
    """Also evaluate the run that is best on val dynamically; null: not."""
    passage_chars: Annotated[int, Field(ge=0, le=20_000)]
    """Characters of the test split that the page shows with each one's surprisal."""
