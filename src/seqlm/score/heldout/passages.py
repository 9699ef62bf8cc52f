"""What of a split is scored: the whole of it, or passages that are spread evenly over one that is too long.

Passages begin and end behind a space or a line end, where words are not cut: they are the
same text for every model, whatever its tokens. A token that begins with the space before
its word is of the passage that the word is of, and so is that space.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

import numpy as np

from seqlm.core.errors import DataError

NUM_PASSAGES = 50
_BLOCK_BYTES = 1 << 20
_SPACE, _LINE_END = ord(" "), ord("\n")


@dataclass(frozen=True)
class Place:
    """A place in the file of a split, and what of the text stands before it."""

    byte: int
    characters: int
    """Line ends left out."""
    line_ends: int
    """Without the split's last one, which is no token."""
    words: int

    def num_chars(self, line_separator: str) -> int:
        """Return how many characters stand before this place, lines joined."""
        return self.characters + self.line_ends * len(line_separator)


@dataclass(frozen=True)
class Passage:
    """A part of a split."""

    path: Path
    begin: Place
    end: Place

    def num_chars(self, line_separator: str) -> int:
        """Return the passage's characters, lines joined."""
        return self.end.num_chars(line_separator) - self.begin.num_chars(line_separator)

    def read(self) -> str:
        """Return the passage with its line ends, but for the split's last one."""
        with self.path.open("rb") as file:
            file.seek(self.begin.byte)
            text = file.read(self.end.byte - self.begin.byte).decode()
            return text if file.read(1) else text.removesuffix("\n")


def find_passages(path: Path, num_chars: int, max_chars: int | None) -> list[Passage]:
    """Return the passages of a split that are scored, in order: about ``max_chars`` characters, or all there are.

    ``num_chars``: characters of the split. Raises DataError where its file is missing.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, SEEK_END)
            share = 1.0 if max_chars is None else max_chars / max(num_chars, 1)
            places = _places(file, [0, size] if share >= 1 else _borders(file, size, share))
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file: run the stage that writes it") from error
    return [Passage(path, begin, end) for begin, end in zip(places[::2], places[1::2], strict=True)]


def _borders(file: BinaryIO, size: int, share: float) -> list[int]:
    """Return the bytes at which passages begin and end, in turn; together they are about a ``share`` of the file."""
    borders: list[int] = []
    last = 0
    for target in np.arange(NUM_PASSAGES) * size / NUM_PASSAGES:
        begin = max(_behind_blank(file, int(target)), last)
        last = max(_behind_blank(file, int(target + share * size / NUM_PASSAGES)), last)
        if begin < last:
            borders += [begin, last]
    return borders


def _behind_blank(file: BinaryIO, start: int) -> int:
    """Return the first place from ``start`` on that follows a space or a line end; the text's end if there is none."""
    if start == 0:
        return 0
    start = file.seek(start - 1)
    while block := file.read(_BLOCK_BYTES):
        if found := [place for place in (block.find(b" "), block.find(b"\n")) if place >= 0]:
            return start + min(found) + 1
        start += len(block)
    return start


def _places(file: BinaryIO, offsets: Sequence[int]) -> list[Place]:
    """Return the places at some bytes, which rise; each is the beginning or the end of the text, or follows a blank."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    places, characters, line_ends, words = [], 0, 0, 0
    for offset in offsets:
        last = b"\n"
        while block := file.read(min(_BLOCK_BYTES, offset - file.tell())):
            values = np.frombuffer(last + block, np.uint8)
            in_words = (values != _SPACE) & (values != _LINE_END)
            # A character has one byte that does not continue another; a blank is a byte of its own.
            starts = int(np.count_nonzero((values[1:] & 0xC0) != 0x80))
            line_ends += block.count(b"\n")
            characters += starts - block.count(b"\n")
            words += int(np.count_nonzero(in_words[1:] > in_words[:-1]))
            last = block[-1:]
        is_last_line_end = offset == size > 0 and last == b"\n"
        places.append(Place(offset, characters, line_ends - is_last_line_end, words))
    return places
