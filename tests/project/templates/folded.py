"""A template for a new kind of token: words regardless of case."""

from collections.abc import Sequence

import numpy as np

from seqlm.core.text import words
from seqlm.vocab.interning import Ids, Interner
from seqlm.vocab.kinds import TokenKind
from seqlm.vocab.subwords import SubwordTokenizer


class FoldedInterner(Interner):
    """Interns words in lower case."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def intern(self, block: str) -> Ids:
        """Return the ids of the words of a block."""
        found = words(block.lower().replace("\n", " "))
        return np.array([self._ids.setdefault(word, len(self._ids)) for word in found], np.uint32)

    def tokens(self) -> list[str]:
        """Return the words seen so far."""
        return list(self._ids)


class FoldedKind(TokenKind):
    """Words in lower case."""

    name, noun, separator = "folded", "folded word", " "

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text in lower case."""
        return words(text.lower().replace("\n", " "))

    def interner(self, line_separator: str, tokenizer: SubwordTokenizer | None) -> FoldedInterner:
        """Return an interner of words in lower case."""
        return FoldedInterner()
