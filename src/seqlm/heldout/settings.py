"""Settings of the ``heldout`` stages."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class HeldoutParams(Section):
    """Which text is scored."""

    max_chars: Annotated[int, Field(ge=1_000, le=10**9)]
    """A split with more characters is scored on passages that together have about this many."""
