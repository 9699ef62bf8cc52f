"""Words: what spaces and line ends part."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqlm.core.text import BLOCK_BYTES, text_blocks, words
from seqlm.vocab.kinds.counted import CountedKind
from seqlm.vocab.kinds.kind import blocks_behind_blanks

if TYPE_CHECKING:
    from seqlm.vocab.interning import Interner
    from seqlm.vocab.subword_tokenizer import SubwordTokenizer


class WordKind(CountedKind):
    """Words."""

    name, noun, joiner = "word", "word", " "
    numbered_bytes = 64 * BLOCK_BYTES

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks that end behind a blank, line ends as they are."""
        yield from blocks_behind_blanks(text_blocks(path, block_bytes))

    def cut(self, block: str, line_separator: str) -> Sequence[str]:
        """Return the words of a block."""
        return words(block.replace("\n", " "))

    def tokenize(self, text: str, line_separator: str, pieces: "SubwordTokenizer | None") -> list[str]:
        """Return the words of a text."""
        return words(text.replace("\n", " "))

    def numbering(self, num_bytes: int, line_separator: str, pieces: "SubwordTokenizer | None") -> "Interner":
        """Return what numbers words, faster for a large text."""
        from seqlm.vocab import interning as numbering

        if num_bytes < numbering.COMPILED_FROM_BYTES:
            return numbering.WordInterner()
        from seqlm.vocab.hashing import HashedWordInterner

        return HashedWordInterner()
