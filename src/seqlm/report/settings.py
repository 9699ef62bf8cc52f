"""Settings of the ``report`` stage."""

from typing import Annotated

from pydantic import Field

from seqlm.core.settings import Section


class ReportParams(Section):
    """The page."""

    title: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\P{Cc}*$")]
