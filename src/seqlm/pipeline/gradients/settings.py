"""Settings of the ``gradients`` stage."""

from typing import Annotated

from pydantic import Field, model_validator

from seqlm.core.settings import Section

Small = Annotated[int, Field(ge=1, le=10_000)]


class GradientsParams(Section):
    """The small models of section 8.7 and what is measured with them."""

    num_hiddens: Small
    num_steps: Annotated[int, Field(ge=2, le=1000)]
    """Steps of the windows."""
    num_minibatches: Annotated[int, Field(ge=0, le=100_000)]
    """Minibatches that each small model is trained on."""
    lengths: Annotated[list[Small], Field(min_length=1, max_length=50)]
    """Lengths after which backpropagation is truncated."""
    num_draws: Annotated[int, Field(ge=2, le=10_000)]
    """Random draws of each truncation."""
    trained_lengths: Annotated[list[Small], Field(min_length=1, max_length=50)]
    """Lengths of truncation that models are trained with."""
    num_trainings: Annotated[int, Field(ge=1, le=100)]
    """Training runs with each of them, from different seeds."""

    @model_validator(mode="after")
    def _require_short_lengths(self) -> "GradientsParams":
        for name, lengths in (("lengths", self.lengths), ("trained_lengths", self.trained_lengths)):
            if max(lengths) > self.num_steps:
                raise ValueError(f"{name} must not exceed num_steps = {self.num_steps}")
        return self
