"""A template for the settings of a new stage, ``lengths``."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class LengthsParams(Section):
    """How lines are counted."""

    longest: Annotated[int, Field(ge=1, le=10_000)]
    """Longer lines count as this long."""
