"""A compiled loop that numbers the words of a large text."""

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.core.text import LINE_END, SPACE, TAB

Ints = NDArray[np.integer]
_FACTOR = 1_000_003
"""Of a word's hash: odd, and large enough to spread words of a few letters."""


def number_words(text: bytes) -> tuple[Ints, list[str]]:
    """Return each word of a text as a number, and the word of each number; numbers are given by
    first appearance. The text is in UTF-8, and a blank ends it."""
    most = len(text) // 2
    slots, places = np.full(1 << most.bit_length(), -1, np.int32), np.empty(most, np.int32)
    known = np.empty(len(text), np.uint8)
    num_words, size = _intern(np.frombuffer(text, np.uint8), slots, places, known)
    known = known[:size]
    numbers = np.cumsum(known == LINE_END)[places[:num_words]]
    return numbers, known.tobytes().decode().split("\n")[:-1]


@compiled()
def _intern(text: Ints, slots: Ints, places: Ints, known: Ints) -> tuple[int, int]:
    """Write each distinct word as a line to ``known``, and where the line of each word begins to
    ``places``; return how many words and how many bytes there are.

    ``slots``, a power of two of -1, become a hash table of these places.
    """
    num_words = size = end = mixed = 0
    for byte in text:
        if byte not in (SPACE, LINE_END, TAB):
            known[end] = byte  # after the known words, in case that it is new
            end += 1
            mixed = mixed * _FACTOR + byte
            continue
        if end > size:
            known[end] = LINE_END
            slot = mixed & (len(slots) - 1)
            while slots[slot] >= 0 and not _are_equal(known, slots[slot], size):
                slot = (slot + 1) & (len(slots) - 1)
            if slots[slot] < 0:
                slots[slot] = size
                size = end + 1
            places[num_words] = slots[slot]
            num_words += 1
        end, mixed = size, 0
    return num_words, size


@compiled()
def _are_equal(lines: Ints, one: int, other: int) -> bool:
    """Return whether the lines that begin at two places are equal."""
    while lines[one] == lines[other] != LINE_END:
        one += 1
        other += 1
    return lines[one] == lines[other]
