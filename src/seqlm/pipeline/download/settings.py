"""Settings of the ``download`` stage."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section


class DownloadParams(Section):
    """Which corpus to get, and what to do without a network."""

    corpus: Annotated[str, Field(min_length=1, max_length=4096)]
    """A name of the registry, or the path of a text file, plain or packed with gzip, bzip2 or
    xz."""
    fallback: Literal["sample"] | None
    """The corpus to use if no source can be reached; null stops instead."""
