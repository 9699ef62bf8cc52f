"""Settings of the ``preprocess`` stage."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section

Fraction = Annotated[float, Field(gt=0, lt=1)]


class SplitFractions(Section):
    """Shares of the text's bytes, in order; the rest is test."""

    train: Fraction
    val: Fraction

    @model_validator(mode="after")
    def _leave_a_rest(self) -> "SplitFractions":
        if self.shares["test"] <= 0:
            raise ValueError("train and val must leave a share for the test set")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The share of each split."""
        return {"train": self.train, "val": self.val, "test": round(1 - self.train - self.val, 9)}


class PreprocessParams(Section):
    """How text is decoded, cleaned and split."""

    normalise: Literal["letters", "none"]
    """``letters``: the book's cleaning; ``none``: the text as it is."""
    split: SplitFractions
