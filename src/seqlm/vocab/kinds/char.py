"""Characters: the tokens are the text itself, its lines joined."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqlm.core.text import text_blocks
from seqlm.vocab.kinds.counted import CountedKind

if TYPE_CHECKING:
    from seqlm.vocab.interning import Interner
    from seqlm.vocab.subword_tokenizer import SubwordTokenizer


class CharKind(CountedKind):
    """Characters."""

    name, noun, joiner = "char", "character", ""
    is_character = True

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks, its lines joined."""
        pending = ""
        for block in text_blocks(path, block_bytes):
            text = pending + block
            # The last character waits: a line end there may be the split's last.
            pending = text[-1:]
            yield text[:-1].replace("\n", line_separator)
        yield pending.replace("\n", "")

    def cut(self, block: str, line_separator: str) -> Sequence[str]:
        """Return the block: it is a sequence of its characters."""
        return block

    def tokenize(self, text: str, line_separator: str, pieces: "SubwordTokenizer | None") -> list[str]:
        """Return the characters of a text, its lines joined."""
        return list(text.replace("\n", line_separator))

    def numbering(self, num_bytes: int, line_separator: str, pieces: "SubwordTokenizer | None") -> "Interner":
        """Return what numbers characters."""
        from seqlm.vocab.interning import CharInterner

        return CharInterner()
