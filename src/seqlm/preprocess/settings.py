"""Settings of the ``preprocess`` stage."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section

Fraction = Annotated[float, Field(gt=0, lt=1)]


class SplitFractions(Section):
    """Shares of the text's bytes, in order."""

    train: Fraction
    val: Fraction
    test: Fraction

    @model_validator(mode="after")
    def _sum_to_one(self) -> "SplitFractions":
        if abs(self.train + self.val + self.test - 1) > 1e-9:
            raise ValueError("train, val and test must sum to 1")
        return self


class PreprocessParams(Section):
    """How text is decoded, cleaned and split."""

    normalise: Literal["letters", "none"]
    """``letters``: the book's cleaning; ``none``: the text as it is."""
    split: SplitFractions
