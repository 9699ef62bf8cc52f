"""Settings of the ``generate`` stage."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section

Temperature = Annotated[float, Field(ge=0, le=100)]
Prefix = Annotated[str, Field(min_length=1, max_length=10_000)]


class GenerateParams(Section):
    """Which prefixes are continued, and how."""

    prefixes: Annotated[list[Prefix], Field(min_length=1, max_length=1000)] | Literal["auto"]
    """The beginning of val takes their place for ``auto``, and if train never has them."""
    temperatures: Annotated[list[Temperature], Field(min_length=1, max_length=20)]
    """0: the most likely token; t > 0: tokens are drawn from q proportional to p to the power 1 /
    t."""
    num_preds: Annotated[int, Field(ge=1, le=100_000)]
    """Number of tokens generated after the prefix."""
