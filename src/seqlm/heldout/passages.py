"""The part of a split that is scored: all of it, or evenly spaced passages of a long one.

Passages begin and end after a space or a line end, so that they cut no word and are the same text for every model,
whatever its tokens. A token that begins with the space before its word belongs to the passage of the word, and so does
that space.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES, LINE_END, SPACE
from seqlm.heldout.scored_text import NUM_BLOCKS
from seqlm.vocab.vocabulary import Vocab

NUM_PASSAGES = NUM_BLOCKS


@dataclass(frozen=True)
class TextPosition:
    """A position in the file of a split, and the size of the text before it."""

    byte: int
    characters: int
    """Without line ends."""
    line_ends: int
    """Without the last one of the split, which is no token."""
    words: int

    def num_chars(self, line_separator: str) -> int:
        """Return the number of characters before this position, with lines joined."""
        return self.characters + self.line_ends * len(line_separator)


@dataclass(frozen=True)
class Passage:
    """A part of a split."""

    path: Path
    begin: TextPosition
    end: TextPosition

    def num_chars(self, line_separator: str) -> int:
        """Return the number of characters of the passage, with lines joined."""
        return self.end.num_chars(line_separator) - self.begin.num_chars(line_separator)

    def read(self) -> str:
        """Return the passage with its line ends, except the last one of the split."""
        with self.path.open("rb") as file:
            file.seek(self.begin.byte)
            text = file.read(self.end.byte - self.begin.byte).decode()
            return text if file.read(1) else text.removesuffix("\n")


def find_passages(
    path: Path,
    num_chars: int,
    max_chars: int,
    *,
    num_passages: int = NUM_PASSAGES,
    block_bytes: int = BLOCK_BYTES,
) -> list[Passage]:
    """Return the passages of a split that are scored, in order: about ``max_chars`` characters, or all of it.

    ``num_chars`` is the number of characters of the split. Raises DataError if its file is missing.
    """
    try:
        with path.open("rb") as file:
            boundaries = [0, file.seek(0, SEEK_END)]
            if num_chars > max_chars:
                boundaries = _boundaries(file, boundaries[1], max_chars / num_chars, num_passages, block_bytes)
            positions = _positions(file, boundaries, block_bytes)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file: run the stage that writes it") from error
    return [Passage(path, begin, end) for begin, end in zip(positions[::2], positions[1::2], strict=True)]


def _boundaries(file: BinaryIO, size: int, share: float, num_passages: int, block_bytes: int) -> list[int]:
    """Return where passages begin and end, in turn, in bytes; together they are about a ``share`` of the file."""
    boundaries: list[int] = []
    last = 0
    for target in np.arange(num_passages) * size / num_passages:
        begin = max(_after_blank(file, int(target), block_bytes), last)
        last = max(_after_blank(file, int(target + share * size / num_passages), block_bytes), last)
        if begin < last:
            boundaries += [begin, last]
    return boundaries


def _after_blank(file: BinaryIO, start: int, block_bytes: int) -> int:
    """Return the first position from ``start`` that follows a space or a line end; the end of the text if none does."""
    if start == 0:
        return 0
    start = file.seek(start - 1)
    while block := file.read(block_bytes):
        if blanks := [index for index in (block.find(b" "), block.find(b"\n")) if index >= 0]:
            return start + min(blanks) + 1
        start += len(block)
    return start


def _positions(file: BinaryIO, offsets: Sequence[int], block_bytes: int) -> list[TextPosition]:
    """Return the positions at increasing byte offsets: the beginning or end of the text, or after a blank."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    positions, characters, line_ends, words = [], 0, 0, 0
    for offset in offsets:
        last = b"\n"
        while block := file.read(min(block_bytes, offset - file.tell())):
            values = np.frombuffer(last + block, np.uint8)
            in_words = (values != SPACE) & (values != LINE_END)
            # Each character has exactly one byte that is not a continuation byte of UTF-8.
            starts = int(np.count_nonzero((values[1:] & 0xC0) != 0x80))
            line_ends += block.count(b"\n")
            characters += starts - block.count(b"\n")
            words += int(np.count_nonzero(in_words[1:] > in_words[:-1]))
            last = block[-1:]
        is_last_line_end = offset == size > 0 and last == b"\n"
        positions.append(TextPosition(offset, characters, line_ends - is_last_line_end, words))
    return positions


_BLOCK = 1 << 20


def token_offsets(vocab: Vocab, ids: NDArray[np.integer], positions: Sequence[TextPosition]) -> list[int]:
    """Return how many tokens of a split's ``ids`` end before each of some increasing positions."""
    kind, separator = vocab.token_kind, vocab.line_separator
    if not kind.is_lossless:
        return [position.words for position in positions]
    chars = [position.num_chars(separator) for position in positions]
    return chars if kind.is_character else _tokens_within(vocab.lengths(vocab.tokens), ids, chars)


def _tokens_within(lengths: NDArray[np.int64], ids: NDArray[np.integer], chars: Sequence[int]) -> list[int]:
    """Return how many tokens fit into each of some increasing numbers of characters."""
    found: list[int] = []
    before = 0
    for start in range(0, len(ids), _BLOCK):
        ends = before + np.cumsum(lengths[np.asarray(ids[start : start + _BLOCK])])
        before = int(ends[-1])
        # If the block ends at the position itself, bytes that end its last character may follow in the next block.
        while len(found) < len(chars) and chars[len(found)] < before:
            found.append(start + int(np.searchsorted(ends, chars[len(found)], side="right")))
    return found + [len(ids)] * (len(chars) - len(found))
