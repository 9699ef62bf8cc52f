"""Cleaned text: reading and counting in bounded memory, and passages of it.

The unit is a *cleaned line*: its characters are the line itself, its words are separated by
spaces. Text is read in blocks of a file, so that neither the length of the text nor the
length of a line matters. Characters are counted in the bytes of UTF-8: each has exactly one
byte that does not continue another.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_errors

BLOCK_BYTES = 1 << 16
"""Text that is processed at once: it fits into the processor's cache."""
SPACE, LINE_END, TAB = ord(" "), ord("\n"), ord("\t")
NUM_CODE_POINTS = 0x110000
"""All characters of Unicode, and the code points that are none yet."""

_LAST_CONTINUATION = -65
"""The largest byte, as a signed number, that continues a character."""


def words(line: str) -> list[str]:
    """Return the words of a cleaned line, which spaces separate."""
    return list(filter(None, line.split(" ")))


def byte_blocks(path: Path, block_bytes: int = BLOCK_BYTES, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield a file that this pipeline wrote, or a part of its bytes, in blocks. Raises DataError if it is missing."""
    with read_errors(path), path.open("rb") as file:
        file.seek(start)
        while block := file.read(block_bytes if stop is None else min(block_bytes, stop - file.tell())):
            yield block


def text_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    """Yield a text file that this pipeline wrote in blocks. Raises DataError if it is missing."""
    yield from codecs.iterdecode(byte_blocks(path, block_bytes), "utf-8")


@dataclass(frozen=True)
class TextSize:
    """Lines, characters (without line ends) and words of a text."""

    lines: int
    characters: int
    words: int

    @classmethod
    def of(cls, text: bytes) -> "TextSize":
        """Measure a text in UTF-8 whose lines all end in ``\\n``."""
        values, lines = np.frombuffer(text, np.uint8), text.count(b"\n")
        characters = len(text) if text.isascii() else np.count_nonzero(values.view(np.int8) > _LAST_CONTINUATION)
        is_blank = (values == SPACE) | (values == LINE_END) | (values == TAB)
        return cls(lines, int(characters) - lines, int(np.count_nonzero(is_blank[1:] > is_blank[:-1])))


def count_text(path: Path, block_bytes: int = BLOCK_BYTES, start: int = 0, stop: int | None = None) -> TextSize:
    """Return the size of a text file whose lines all end in ``\\n``, or of a part of its bytes that cuts no word."""
    lines = characters = num_words = 0
    after_blank = True
    for block in byte_blocks(path, block_bytes, start, stop):
        values = np.frombuffer(block, np.uint8)
        is_end = values == LINE_END
        is_blank = is_end | (values == SPACE)
        ends = int(np.count_nonzero(is_end))
        lines += ends
        begins = len(block) if block.isascii() else int(np.count_nonzero(values.view(np.int8) > _LAST_CONTINUATION))
        characters += begins - ends
        num_words += int(np.count_nonzero(is_blank[:-1] > is_blank[1:])) + int(after_blank and not is_blank[0])
        after_blank = bool(is_blank[-1])
    return TextSize(lines, characters, num_words)


def evenly_spaced(num_windows: int, length: int, total: int) -> NDArray[np.int64]:
    """Return where ``num_windows`` windows begin that are spread evenly over ``total`` items.

    Each window has ``length`` items; the first begins at 0, the last ends at ``total``. If
    there are fewer places to begin than windows, every place is returned once.
    """
    last = total - length
    num_windows = min(num_windows, last + 1)
    return np.arange(num_windows) * last // max(num_windows - 1, 1)
