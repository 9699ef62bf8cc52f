"""Settings of the ``evaluate`` stage."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class EvaluateParams(Section):
    """Mixtures of models, and how much of test is shown."""

    mixtures: bool
    """Also mix the best network on val with the n-gram model that helps it most, and with other networks that help."""
    passage_chars: Annotated[int, Field(ge=0, le=20_000)]
    """Characters of test that the page shows with their surprisals."""
