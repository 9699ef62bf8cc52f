"""Settings of the comparison of two revisions."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class CompareParams(Section):
    """How much worse a model may get before the comparison fails."""

    tolerance: Annotated[float, Field(ge=0, le=10)]
    """Largest relative rise of a model's bits per character."""
    splits: Annotated[list[Annotated[str, Field(pattern="^(train|train_subset|val|test)$")]], Field(min_length=1)]
    """Splits to compare."""
    allow_missing: bool
    """Accept that a model is gone."""
    allow_other_corpus: bool
    """Compare models of different corpora."""
