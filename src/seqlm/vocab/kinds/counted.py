"""The kinds whose vocabulary is what was counted in train."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from seqlm.core.settings import Section
from seqlm.vocab.kinds.kind import TokenKind

Token = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]


class CountedParams(Section):
    """Settings of one kind of token."""

    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Tokens that occur less often in train are left out of the vocabulary."""
    reserved_tokens: Annotated[list[Token], Field(max_length=1000)]
    """Tokens that follow ``<unk>``, whether the text has them or not."""

    @model_validator(mode="after")
    def _distinct(self) -> "CountedParams":
        if len({"<unk>", *self.reserved_tokens}) != len(self.reserved_tokens) + 1:
            raise ValueError("reserved_tokens must be distinct and not <unk>")
        return self


class CountedKind(TokenKind):
    """A kind of token that stands in the text as such, often or seldom."""

    settings = CountedParams
    has_unknown = True

    def choice(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return ``min_freq`` and the reserved tokens."""
        assert isinstance(settings, CountedParams)
        return settings.min_freq, settings.reserved_tokens
