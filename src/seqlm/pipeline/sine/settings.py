"""Settings of the ``sine`` stage."""

from typing import Annotated

from pydantic import Field, model_validator

from seqlm.core.settings import Section

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class SineParams(Section):
    """The noisy sine of section 8.1 and the network that predicts it."""

    num_points: Count
    """T: points of the series."""
    tau: Annotated[int, Field(ge=1, le=10_000)]
    """Past values that predict the next one."""
    num_train: Count
    """The first pairs of features and label are for training."""
    num_epochs: Annotated[int, Field(ge=1, le=100_000)]
    steps: Annotated[
        list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=20)
    ]
    """The k of the k-step predictions."""
    taus: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(max_length=20)]
    """Values of tau to compare (exercise 8.1-1)."""

    @model_validator(mode="after")
    def _require_long_series(self) -> "SineParams":
        needed = self.num_train + max([self.tau, *self.taus]) + max(self.steps)
        if needed > self.num_points:
            raise ValueError(
                "num_points must be at least num_train + the largest tau + the largest of steps "
                f"= {needed}"
            )
        return self
