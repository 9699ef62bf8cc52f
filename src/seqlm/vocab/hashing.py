"""Numbering words by first appearance in compiled loops over the bytes of UTF-8.

The words met so far stand one behind the other in an array of bytes. A table with open
addressing leads from a word's hash to its number: an entry is 32 bits of the hash and the
number plus one, and 0 where it is empty; words of equal bits are told apart by their bytes.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.core.text import LINE_END, SPACE

Bytes = NDArray[np.uint8]
Table = NDArray[np.uint64]
Starts = NDArray[np.int64]
Numbers = NDArray[np.uint32]

_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFF_FFFF)
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF2_9CE4_8422_2325), np.uint64(0x100_0000_01B3)
_MIXER = np.uint64(0x9E37_79B9_7F4A_7C15)
_ONE = np.uint64(1)


class HashedWordInterner:
    """Numbers words."""

    def __init__(self, table_size: int = 1 << 16) -> None:
        """Begin with a table of this size, a power of two."""
        self._table: Table = np.zeros(table_size, np.uint64)
        """It is at most half full."""
        self._starts: Starts = np.zeros(table_size // 2 + 1, np.int64)
        """Word n lies from entry n to entry n + 1 in the letters."""
        self._letters: Bytes = np.empty(0, np.uint8)
        self._num_words = 0

    def number(self, block: str) -> Numbers:
        """Return the numbers of the words of a block, which cuts no word."""
        text = np.frombuffer(block.encode(), np.uint8)
        self._letters = _with_room(self._letters, int(self._starts[self._num_words]), len(text))
        numbers = np.empty((len(text) + 1) // 2, np.uint32)  # each word but the last has a space behind it
        place = count = 0
        while True:
            place, count, self._num_words = _number(
                text, place, self._table, self._letters, self._starts, self._num_words, numbers, count
            )
            if place == len(text):
                return numbers[:count]
            self._starts = _with_room(self._starts, len(self._starts), len(self._starts) - 1)
            table = np.zeros(2 * len(self._table), np.uint64)
            _refill(self._table, table)
            self._table = table

    def names(self) -> list[str]:
        """Return the words met so far."""
        letters, ends = self._letters.tobytes(), self._starts[: self._num_words + 1].tolist()
        return [letters[start:end].decode() for start, end in pairwise(ends)]


def _with_room(array: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """Return an array with the first ``used`` entries of ``array`` and room for so many more."""
    if used + more <= len(array):
        return array
    larger = np.empty(max(used + more, 2 * used), array.dtype)
    larger[:used] = array[:used]
    return larger


@compiled(nogil=True)
def _number(
    text: Bytes, place: int, table: Table, letters: Bytes, starts: Starts, num_words: int, numbers: Numbers, count: int
) -> tuple[int, int, int]:
    """Write the numbers of the words of ``text`` from ``place`` on to ``numbers`` from entry ``count`` on.

    Returns where in the text it ended, how many numbers there are, and the words met so far.
    It ends before its time where a word is new and the table half full.
    """
    mask = np.uint64(len(table) - 1)
    while place < len(text):
        start, mixed = place, _FNV_BASIS
        while place < len(text) and text[place] != SPACE and text[place] != LINE_END:
            mixed = (mixed ^ np.uint64(text[place])) * _FNV_PRIME
            place += 1
        if place == start:
            place += 1
            continue
        tag = (mixed ^ (mixed >> _HALF)) * _MIXER >> _HALF
        slot = tag & mask
        while True:
            entry = table[slot]
            if entry == 0:
                if num_words + 1 == len(starts):
                    return start, count, num_words
                number, end = np.int64(num_words), starts[num_words]
                for letter in range(start, place):
                    letters[end] = text[letter]
                    end += 1
                num_words += 1
                starts[num_words] = end
                table[slot] = (tag << _HALF) | np.uint64(num_words)
                break
            if entry >> _HALF == tag:
                number = np.int64(entry & _LOWER_HALF) - 1
                if _is_same(text, start, place, letters, starts[number], starts[number + 1]):
                    break
            slot = (slot + _ONE) & mask
        numbers[count] = number
        count += 1
    return place, count, num_words


@compiled(nogil=True)
def _is_same(text: Bytes, start: int, end: int, letters: Bytes, first: int, last: int) -> bool:
    """Whether two stretches of bytes are equal."""
    if end - start != last - first:
        return False
    offset, size = 0, end - start
    while offset < size and text[start + offset] == letters[first + offset]:
        offset += 1
    return offset == size


@compiled(nogil=True)
def _refill(old: Table, new: Table) -> None:
    """Put the entries of a table into a larger one."""
    mask = np.uint64(len(new) - 1)
    for entry in old:
        if entry != 0:
            slot = (entry >> _HALF) & mask
            while new[slot] != 0:
                slot = (slot + _ONE) & mask
            new[slot] = entry
