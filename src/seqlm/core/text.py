"""Cleaned text, and passages of it.

The unit is a *cleaned line*: its characters are the line itself, its words are separated by spaces.
Characters are counted in the bytes of UTF-8: each has exactly one byte that does not continue
another.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SPACE, LINE_END, TAB = ord(" "), ord("\n"), ord("\t")
LINE_ENDS = "\n\r\v\f\x85\u2028\u2029"
"""The characters that end a line in a text that is not clean."""
NUM_CODE_POINTS = 0x110000
"""All characters of Unicode, and the code points that are not characters yet."""

_LAST_CONTINUATION = -65
"""The largest byte, as a signed number, that continues a character."""


def words(line: str) -> list[str]:
    """Return the words of a cleaned line, which spaces separate."""
    return list(filter(None, line.split(" ")))


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
        characters = (
            len(text)
            if text.isascii()
            else np.count_nonzero(values.view(np.int8) > _LAST_CONTINUATION)
        )
        is_blank = (values == SPACE) | (values == LINE_END) | (values == TAB)
        return cls(
            lines, int(characters) - lines, int(np.count_nonzero(is_blank[1:] > is_blank[:-1]))
        )


def window_starts(num_windows: int, length: int, total: int) -> NDArray[np.int64]:
    """Return where ``num_windows`` windows begin that are spread evenly over ``total`` items.

    Each window has ``length`` items; the first begins at 0, the last ends at ``total``. If
    there are fewer places to begin than windows, every place is returned once.
    """
    last = total - length
    num_windows = min(num_windows, last + 1)
    return np.arange(num_windows) * last // max(num_windows - 1, 1)
