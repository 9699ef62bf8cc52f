"""Settings of the ``score`` stage."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section
from seqlm.vocab.settings import Orders

LearningRate = Annotated[float, Field(gt=0, le=1e3)]


class DynamicParams(Section):
    """Dynamic evaluation: a network keeps learning from text that it has predicted."""

    lrs: Annotated[list[LearningRate], Field(min_length=1, max_length=50)]
    """Learning rates to choose from, on val."""
    decays: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=50)]
    """Shares of the way back to the trained weights to choose from, on val."""


class DynamicCountsParams(Section):
    """Dynamic counts: a Kneser-Ney model for each kind of token that keeps counting text that it
    has predicted."""

    order: Orders
    """Order of the model, for each kind of token."""


class ScoreParams(Section):
    """How models are scored."""

    dynamic: DynamicParams | None
    """Also evaluate the runs that saw all of train dynamically; null: do not."""
    dynamic_counts: DynamicCountsParams | None
    """Also score n-gram models that keep counting; null: do not."""
