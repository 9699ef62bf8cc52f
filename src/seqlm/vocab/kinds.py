"""Kinds of tokens, and the list of them.

To the rest of the pipeline a kind is what :class:`TokenKind` says; only :data:`ALL` names all of them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section
from seqlm.core.text import BLOCK_BYTES, text_blocks, words
from seqlm.vocab.interning import CharInterner, Interner
from seqlm.vocab.subwords import (
    SubwordInterner,
    SubwordParams,
    SubwordTokenizer,
    decode_subwords,
    num_characters,
    sample_text,
    train_tokenizer,
)

Token = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]


class CountedParams(Section):
    """Settings of a kind whose vocabulary is counted in train."""

    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Tokens that occur less often in train are left out of the vocabulary."""
    reserved_tokens: Annotated[list[Token], Field(max_length=1000)]
    """Tokens that follow ``<unk>``, whether or not the text has them."""

    @model_validator(mode="after")
    def _distinct(self) -> "CountedParams":
        if len({"<unk>", *self.reserved_tokens}) != len(self.reserved_tokens) + 1:
            raise ValueError("reserved_tokens must be distinct and not <unk>")
        return self


class TokenKind(ABC):
    """A kind of token: how text is split into its tokens, and how they are joined to text again.

    Only subwords have a ``tokenizer``, which is trained, and no unknown tokens; for the other
    kinds the vocabulary is counted in train, and ``tokenizer`` is None.
    """

    name: ClassVar[str]
    """Its name in settings, paths, and the names of models."""
    noun: ClassVar[str]
    """What messages call one of its tokens."""
    settings: ClassVar[type[Section]] = CountedParams
    """The model of its settings in the section ``vocab``."""
    separator: ClassVar[str]
    """The text between two tokens. If it is empty, the tokens are the whole text, with its blanks."""
    has_unknown: ClassVar[bool] = True
    """Whether a text may have tokens that the vocabulary lacks."""
    is_character: ClassVar[bool] = False
    """Whether each token is one character."""
    interned_bytes: ClassVar[int] = BLOCK_BYTES
    """Bytes of text that are interned at once. Each block is counted into a table as long as the vocabulary."""

    @property
    def is_lossless(self) -> bool:
        """Whether the tokens, one after another, are the whole text, including what joins its lines."""
        return not self.separator

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks of text that cut no token; its last line end is left out."""
        pending: list[str] = []
        for block in text_blocks(path, block_bytes):
            # The last blank waits: it may be the split's last line end, and subwords may begin with a space.
            end = max(block.rfind(" "), block.rfind("\n"))
            if end >= 0 and (text := "".join([*pending, block[:end]])):
                yield text
            pending = [block[end:]] if end >= 0 else [*pending, block]
        yield "".join(pending).removesuffix("\n")

    @abstractmethod
    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the tokens of a text, or the pretokens that a tokenizer splits; the text may have line ends."""

    @abstractmethod
    def interner(self, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of the tokens of a text."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens."""
        return self.separator.join(tokens)

    def length(self, token: str) -> int:
        """Return the number of characters of a token."""
        return len(token)

    def vocab_rule(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return how often a token must occur to enter the vocabulary, and the tokens that are always in it."""
        assert isinstance(settings, CountedParams)
        return settings.min_freq, settings.reserved_tokens

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer | None:
        """Train a tokenizer on the training split, if the kind has one."""
        return None


class CharKind(TokenKind):
    """Characters."""

    name, noun, separator = "char", "character", ""
    is_character = True

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks, its lines joined."""
        pending = ""
        for block in text_blocks(path, block_bytes):
            text = pending + block
            # The last character waits: it may be the split's last line end.
            pending = text[-1:]
            yield text[:-1].replace("\n", line_separator)
        yield pending.replace("\n", "")

    def pretokenize(self, text: str, line_separator: str) -> str:
        """Return the text with its lines joined: it is a sequence of its characters."""
        return text.replace("\n", line_separator)

    def interner(self, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of characters."""
        return CharInterner()


class WordKind(TokenKind):
    """Words."""

    name, noun, separator = "word", "word", " "
    interned_bytes = 64 * BLOCK_BYTES

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text."""
        return words(text.replace("\n", " "))

    def interner(self, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of words."""
        from seqlm.vocab.hashing import WordInterner  # imports the compiler

        return WordInterner()


# A fixed list instead of a Unicode property, so that all versions of Unicode give equal pretokens.
_MARKS = re.escape("".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()))
_MARKS += "¡-©«-´¶-¹»-¿×÷،؛؟۔।॥\u2010-\u2027\u2030-\u205e\u20a0-\u20c0\u2190-\u2bff"
_MARKS += "\u3001-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_PRETOKENS = re.compile(rf" ?[^ \n{_MARKS}]+(?:['’][^ \n{_MARKS}]+)*| ?[{_MARKS}]+|[ \n]")
"""A word with the space before it and the apostrophes inside it; punctuation; or a single blank."""
_MAX_PRETOKEN = 100
"""Characters of a pretoken; longer ones are cut."""
_PARTS = re.compile(f"(?s).{{1,{_MAX_PRETOKEN}}}")


class SubwordKind(TokenKind):
    """Parts of words."""

    name, noun, separator = "subword", "subword", ""
    settings = SubwordParams
    has_unknown = False
    interned_bytes = 16 * BLOCK_BYTES

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the parts of a text that are tokenized one by one."""
        found = _PRETOKENS.findall(text.replace("\n", " ") if line_separator == " " else text)
        if any(len(pretoken) > _MAX_PRETOKEN for pretoken in found):
            found = [part for pretoken in found for part in _PARTS.findall(pretoken)]
        return found if line_separator else [pretoken for pretoken in found if pretoken != "\n"]

    def interner(self, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of subwords, which has all of them from the start."""
        assert tokenizer is not None
        return SubwordInterner(tokenizer, partial(self.pretokenize, line_separator=line_separator))

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of subwords; bytes that form no character become U+FFFD."""
        return decode_subwords(tokens)

    def length(self, token: str) -> int:
        """Return how many characters begin in a subword: among the bytes of a character, only the first counts."""
        return num_characters(token)

    def vocab_rule(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return that every subword is in the vocabulary."""
        return 0, ()

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer:
        """Train a tokenizer on a sample of the training split."""
        assert isinstance(settings, SubwordParams)
        blocks = (self.pretokenize(text, line_separator) for text in sample_text(path))
        return train_tokenizer(blocks, path.stat().st_size, settings)


ALL: dict[str, TokenKind] = {kind.name: kind for kind in (CharKind(), WordKind(), SubwordKind())}
"""Name -> kind, in the order in which kinds are reported."""

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(ALL)]
    """The name of a kind; settings accept no other string."""

KINDS: tuple[Kind, ...] = tuple(ALL)
"""The names of all kinds."""


def token_kind(name: str) -> TokenKind:
    """Return the kind of this name."""
    return ALL[name]
