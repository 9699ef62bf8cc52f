"""Words, which spaces and line ends separate."""

from collections.abc import Sequence

from seqlm.core.text import BLOCK_BYTES, words
from seqlm.vocab import interning
from seqlm.vocab.kinds.kind import TokenKind
from seqlm.vocab.subword_tokenizer import SubwordTokenizer


class WordKind(TokenKind):
    """Words."""

    name, noun, separator = "word", "word", " "
    interned_bytes = 64 * BLOCK_BYTES

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text."""
        return words(text.replace("\n", " "))

    def interner(self, num_bytes: int, line_separator: str, tokenizer: SubwordTokenizer | None) -> interning.Interner:
        """Return an interner of words, a faster one for a large text."""
        if num_bytes < interning.COMPILED_FROM_BYTES:
            return interning.WordInterner()
        from seqlm.vocab.hashing import HashedWordInterner  # imports the compiler

        return HashedWordInterner()
