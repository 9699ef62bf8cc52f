"""Kinds of tokens, and the list of them.

To the rest of the pipeline a kind is what :class:`TokenKind` says; only :data:`ALL` names all of them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from seqlm.core.files import read_text
from seqlm.core.settings import Section
from seqlm.core.text import words
from seqlm.vocab.subwords import BYTES, SubwordParams, SubwordTokenizer, sample, train_tokenizer


class TokenKind(ABC):
    """A kind of token: how text is split into its tokens, and how they are joined to text again.

    Only subwords have a ``tokenizer``, which is trained, and no unknown tokens; for the other
    kinds the vocabulary is counted in train, and ``tokenizer`` is None.
    """

    name: ClassVar[str]
    """Its name in settings, paths, and the names of models."""
    noun: ClassVar[str]
    """What messages call one of its tokens."""
    separator: ClassVar[str]
    """The text between two tokens. If it is empty, the tokens are the whole text, with its blanks."""
    has_unknown: ClassVar[bool] = True
    """Whether a text may have tokens that the vocabulary lacks."""
    is_character: ClassVar[bool] = False
    """Whether each token is one character."""

    @property
    def is_lossless(self) -> bool:
        """Whether the tokens, one after another, are the whole text, including what joins its lines."""
        return not self.separator

    @abstractmethod
    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the tokens of a text, or the pretokens that a tokenizer splits; the text may have line ends."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens."""
        return self.separator.join(tokens)

    def length(self, token: str) -> int:
        """Return the number of characters of a token."""
        return len(token)

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer | None:
        """Train a tokenizer on the training split, if the kind has one."""
        return None


class CharKind(TokenKind):
    """Characters."""

    name, noun, separator = "char", "character", ""
    is_character = True

    def pretokenize(self, text: str, line_separator: str) -> str:
        """Return the text with its lines joined: it is a sequence of its characters."""
        return text.replace("\n", line_separator)


class WordKind(TokenKind):
    """Words."""

    name, noun, separator = "word", "word", " "

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text; a tab separates words as a space does."""
        return words(text.replace("\n", " ").replace("\t", " "))


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
    has_unknown = False

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the parts of a text that are tokenized one by one."""
        found = _PRETOKENS.findall(text.replace("\n", " ") if line_separator == " " else text)
        if any(len(pretoken) > _MAX_PRETOKEN for pretoken in found):
            found = [part for pretoken in found for part in _PARTS.findall(pretoken)]
        return found if line_separator else [pretoken for pretoken in found if pretoken != "\n"]

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of subwords; bytes that form no character become U+FFFD."""
        return b"".join(BYTES.get(token) or token.encode() for token in tokens).decode("utf-8", "replace")

    def length(self, token: str) -> int:
        """Return how many characters begin in a subword: among the bytes of a character, only the first counts."""
        return int(BYTES[token][0] & 0xC0 != 0x80) if token in BYTES else len(token)

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer:
        """Train a tokenizer on a sample of the training split."""
        assert isinstance(settings, SubwordParams)
        passages = (self.pretokenize(passage, line_separator) for passage in sample(read_text(path)))
        return train_tokenizer(passages, path.stat().st_size, settings)


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
