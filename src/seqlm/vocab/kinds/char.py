"""Characters: the tokens are the text itself, with its lines joined."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from seqlm.core.text import text_blocks
from seqlm.vocab.interning import CharInterner, Interner
from seqlm.vocab.kinds.kind import TokenKind
from seqlm.vocab.subword_tokenizer import SubwordTokenizer


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

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the text with its lines joined: it is a sequence of its characters."""
        return text.replace("\n", line_separator)

    def interner(self, num_bytes: int, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of characters."""
        return CharInterner()
