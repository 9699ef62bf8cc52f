"""Subwords: pieces of words that are learnt from train, and bytes for what those cannot write.

A piece may begin with the space before its word, which marks where words begin; it never
holds the end of one word and the beginning of the next, nor letters and punctuation.
So a text may be cut before every space and at every line end, and the pieces are the same.
What joins lines is a piece of its own, or nothing: where lines are joined by nothing,
no piece reaches from one into the next, though no character stands between them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from seqlm.core.settings import Section
from seqlm.core.text import BLOCK_BYTES, text_blocks
from seqlm.vocab.kinds.kind import TokenKind

if TYPE_CHECKING:
    from seqlm.vocab.interning import Interner
    from seqlm.vocab.subword_tokenizer import SubwordTokenizer

_FIRST_BYTE, _LAST_BYTE = 0x10FF00, 0x10FFFF
"""Code points that stand for the 256 bytes; where a text has such characters, they are written in bytes too."""
BYTE_TOKENS = tuple(map(chr, range(_FIRST_BYTE, _LAST_BYTE + 1)))

# A fixed list, and no property of Unicode: equal texts are cut equally by all versions.
_MARKS = re.escape("".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()))
_MARKS += "¡-©«-´¶-¹»-¿×÷،؛؟۔।॥\u2010-\u2027\u2030-\u205e\u20a0-\u20c0\u2190-\u2bff"
_MARKS += "\u3001-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_STRETCHES = re.compile(rf" ?[^ \n{_MARKS}]+(?:['’][^ \n{_MARKS}]+)*| ?[{_MARKS}]+|[ \n]")
"""A word with the space before it, an apostrophe inside it included; punctuation; a blank alone."""
_MAX_STRETCH = 100
"""Characters of a stretch in which pieces are looked for; longer ones are cut."""
_BYTES = re.compile(f"[{BYTE_TOKENS[0]}-{BYTE_TOKENS[-1]}]+")


class SubwordParams(Section):
    """Settings of subwords."""

    algorithm: Literal["bpe", "unigram", "wordpiece"]
    """How pieces are learnt: pairs merged by frequency, pieces dropped from many by likelihood, longest match first."""
    vocab_size: Annotated[int, Field(ge=300, le=1_000_000)]
    """Most tokens, with ``<unk>`` and the 256 bytes; a short text has fewer pieces to learn."""
    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Characters that occur less often are written in bytes, and bpe and wordpiece merge no pair that does."""


class SubwordKind(TokenKind):
    """Pieces of words."""

    name, noun, joiner = "subword", "subword", ""
    settings = SubwordParams
    has_unknown = False
    numbered_bytes: ClassVar[int] = 16 * BLOCK_BYTES

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks that begin with a blank, line ends as they are."""
        pending: list[str] = []
        for block in text_blocks(path, block_bytes):
            # The last blank waits: it may be the split's last line end, and a space belongs to the word behind it.
            place = max(block.rfind(" "), block.rfind("\n"))
            if place >= 0 and (text := "".join([*pending, block[:place]])):
                yield text
            pending = [block[place:]] if place >= 0 else [*pending, block]
        yield "".join(pending).removesuffix("\n")

    def cut(self, block: str, line_separator: str) -> Sequence[str]:
        """Return the stretches of a block that pieces are looked for in: no piece reaches from one into the next."""
        found = _STRETCHES.findall(block.replace("\n", " ") if line_separator == " " else block)
        if any(len(stretch) > _MAX_STRETCH for stretch in found):
            found = [
                stretch[start : start + _MAX_STRETCH]
                for stretch in found
                for start in range(0, len(stretch), _MAX_STRETCH)
            ]
        return found if line_separator else [stretch for stretch in found if stretch != "\n"]

    def tokenize(self, text: str, line_separator: str, pieces: "SubwordTokenizer | None") -> list[str]:
        """Return the pieces of a text, its lines joined."""
        return _needed(pieces).tokenize(self.cut(text, line_separator))

    def numbering(self, num_bytes: int, line_separator: str, pieces: "SubwordTokenizer | None") -> "Interner":
        """Return what numbers pieces: all of them, whether they occur or not."""
        from seqlm.vocab.subword_tokenizer import SubwordInterner

        return SubwordInterner(_needed(pieces), partial(self.cut, line_separator=line_separator))

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of pieces; bytes that are no character become U+FFFD."""
        return _BYTES.sub(_decoded, "".join(tokens))

    def whole(self, joined: str) -> tuple[str, str]:
        """Return the text of pieces but for the bytes that it ends in, and these."""
        text = joined.rstrip("".join(BYTE_TOKENS))
        return self.join([text]), joined[len(text) :]

    def length(self, token: str) -> int:
        """Return how many characters begin in a piece: of a character's bytes the first counts."""
        if token[0] < BYTE_TOKENS[0]:
            return len(token)
        return int(ord(token) - _FIRST_BYTE & 0xC0 != 0x80)

    def learn(self, path: Path, line_separator: str, settings: Section) -> "SubwordTokenizer":
        """Learn the pieces from a sample of the training split."""
        from seqlm.vocab.subword_training import sampled_blocks, train_pieces

        assert isinstance(settings, SubwordParams)
        blocks = (self.cut(block, line_separator) for block in sampled_blocks(path))
        return train_pieces(blocks, settings)


def _needed(pieces: "SubwordTokenizer | None") -> "SubwordTokenizer":
    if pieces is None:
        raise ValueError("subwords need the pieces that were learnt from train")
    return pieces


def _decoded(match: re.Match[str]) -> str:
    return bytes(ord(character) - _FIRST_BYTE for character in match.group()).decode("utf-8", "replace")
