"""Settings of the ``vocab`` stages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, create_model

from seqlm.core.settings import Section
from seqlm.vocab.kinds import ALL
from seqlm.vocab.kinds import KINDS as KINDS
from seqlm.vocab.kinds import Kind as Kind

Order = Annotated[int, Field(strict=True, ge=1, le=20)]
"""Tokens of an n-gram. Hardly a longer one occurs twice, and each order takes as much memory as the one below."""

MODEL_PREFIXES = tuple(f"{kind}-" for kind in KINDS)
"""What the names of the n-gram models over each kind of token begin with."""


def require_every_kind(setting: str, orders: Mapping[Kind, int]) -> None:
    """Raise ValueError if a setting does not give an order for each kind of token."""
    if set(orders) != set(KINDS):
        raise ValueError(f"{setting} must name {', '.join(KINDS)}")


def _line_end(value: object) -> object:
    """Return a line end for a backslash and n, which a shell and ``dvc exp run -S`` pass on."""
    return "\n" if value == "\\n" else value


class _SharedParams(Section):
    """Settings that all kinds share."""

    line_separator: Annotated[Literal["auto", "", " ", "\n"], BeforeValidator(_line_end)]
    """What joins lines in the stream of characters; a line end may be written with the two characters ``\\n``.

    ``auto``: a line end in raw text (``preprocess.normalise: none``), otherwise what the corpus asks for; a user's own
    text asks for a space."""


if TYPE_CHECKING:
    VocabParams = _SharedParams
else:
    _OF_KINDS = {name: (kind.settings, ...) for name, kind in ALL.items()}
    VocabParams = create_model("VocabParams", __base__=_SharedParams, **_OF_KINDS)
    """The shared settings, and an entry for each kind of token."""
