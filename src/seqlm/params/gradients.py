"""Settings of the ``gradients`` stage."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.params.loading import Section

Small = Annotated[int, Field(ge=1, le=10_000)]


class GradientsParams(Section):
    """The small models of section 8.7 and what is measured with them."""

    token: Literal["char", "word"]
    num_hiddens: Small
    num_steps: Annotated[int, Field(ge=2, le=1000)]
    """Steps of the windows."""
    num_minibatches: Annotated[int, Field(ge=0, le=100_000)]
    """Minibatches that each model is trained on between the two looks at its gradients."""
    lengths: Annotated[list[Small], Field(min_length=1, max_length=50)]
    """Lengths after which backpropagation is truncated."""
    num_draws: Annotated[int, Field(ge=2, le=100_000)]
    """Draws of each truncation."""
    max_distance: Small
    """Largest distance between tokens whose mutual information is measured."""

    @model_validator(mode="after")
    def _lengths_fit(self) -> "GradientsParams":
        if max(self.lengths) > self.num_steps:
            raise ValueError(f"lengths must not exceed num_steps = {self.num_steps}")
        return self
