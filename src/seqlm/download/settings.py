"""Settings of the ``download`` stage."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section


class Limits(Section):
    """How long and how much a transfer may take."""

    timeout_s: Annotated[float, Field(gt=0, le=3600)]
    """Seconds without an answer after which a source is given up."""
    deadline_s: Annotated[float, Field(gt=0, le=86400)]
    """Seconds after which a download is given up, retries included, even if it is still dripping."""
    max_bytes: Annotated[int, Field(ge=1, le=2**40)]
    """Most bytes of a corpus, unpacked."""


class DownloadParams(Limits):
    """Which corpus to get, and what to do without a network."""

    corpus: Annotated[str, Field(min_length=1, max_length=4096)]
    """A name of the registry, or the path of a text file, plain or ``.gz``."""
    fallback: Literal["sample"] | None
    """The corpus to use if no source can be reached; null stops instead."""
