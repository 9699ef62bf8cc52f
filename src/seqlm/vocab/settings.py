"""Settings of the ``vocab`` stages."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from seqlm.core.settings import Section

Token = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]


def _line_end(value: object) -> object:
    """Return a line end for backslash and n, which is what a shell and ``dvc exp run -S`` hand over."""
    return "\n" if value == "\\n" else value


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

    line_separator: Annotated[Literal["", " ", "\n"], BeforeValidator(_line_end)]
    """What joins lines in the stream of characters; a line end may be written as ``\\n`` in two characters."""
    char: KindParams
    word: KindParams
