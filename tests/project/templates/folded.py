"""A template for a new kind of token: words regardless of case."""

from collections.abc import Sequence

from seqlm.core.text import words
from seqlm.vocab.kinds import TokenKind


class FoldedKind(TokenKind):
    """Words in lower case."""

    name, noun, separator = "folded", "folded word", " "

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text in lower case."""
        return words(text.lower().replace("\n", " "))
