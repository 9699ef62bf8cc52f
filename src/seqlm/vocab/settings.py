"""The orders of n-grams, as settings."""

from typing import Annotated

from pydantic import Field

from seqlm.vocab.kinds import KINDS, Kind

Order = Annotated[int, Field(strict=True, ge=1, le=20)]
"""Tokens of an n-gram. Hardly a longer one occurs twice, and each order takes as much memory as the
one below."""

Orders = Annotated[dict[Kind, Order], Field(min_length=len(KINDS))]
"""An order for each kind of token."""
