"""Settings of the ``evaluate`` stage."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class EvaluateParams(Section):
    """What is made of the scores, and what is shown of them."""

    mixtures: bool
    """Also mix the run that is best on val, and all that help it, with the n-gram model that is best on val."""
    passage_chars: Annotated[int, Field(ge=0, le=20_000)]
    """Characters of the test split that the page shows with each one's surprisal."""
