"""Settings of the ``vocab`` stages."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.params.loading import Section

Token = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]


class KindParams(Section):
    """Settings of one kind of token."""

    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Tokens that occur less often in train are left out of the vocabulary."""
    reserved_tokens: Annotated[list[Token], Field(max_length=1000)]
    """Tokens that follow ``<unk>``, whether the text has them or not."""

    @model_validator(mode="after")
    def _distinct(self) -> "KindParams":
        if len({"<unk>", *self.reserved_tokens}) != len(self.reserved_tokens) + 1:
            raise ValueError("reserved_tokens must be distinct and not <unk>")
        return self


class VocabParams(Section):
    """Settings of both vocabularies."""

    line_separator: Literal["", " ", "\n"]
    """What joins lines in the stream of characters."""
    char: KindParams
    word: KindParams
