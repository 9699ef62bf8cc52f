"""A template for a new kind of token: words regardless of case."""

from collections.abc import Sequence

from seqlm.core.text import words
from seqlm.vocab.interning import Ids, WordInterner
from seqlm.vocab.kinds import TokenKind
from seqlm.vocab.subwords import SubwordTokenizer


class FoldedInterner(WordInterner):
    """Interns words in lower case."""

    def intern(self, block: str) -> Ids:
        """Return the ids of the words of a block."""
        return super().intern(block.lower())


class FoldedKind(TokenKind):
    """Words in lower case."""

    name, noun, separator = "folded", "folded word", " "

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text in lower case."""
        return words(text.lower().replace("\n", " "))

    def interner(self, num_bytes: int, line_separator: str, tokenizer: SubwordTokenizer | None) -> FoldedInterner:
        """Return an interner of words in lower case."""
        return FoldedInterner()
