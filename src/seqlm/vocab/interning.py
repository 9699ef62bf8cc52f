"""A compiled loop that numbers the words of a large text."""

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.core.text import LINE_END, SPACE, TAB

Ints = NDArray[np.integer]
_FACTOR = 1_000_003
"""Of a word's hash: odd, and large enough to spread words of a few letters."""


def number_words(text: bytes) -> tuple[Ints, list[str]]:
    """Return each word of a text in UTF-8 as a number, and the word of each number; numbers are
    given by first appearance."""
    most = len(text) // 2 + 1
    slots, numbers = np.full(1 << most.bit_length(), -1, np.int32), np.empty(most, np.int32)
    spans = np.empty((most, 2), np.int64)
    num_words, num_distinct = _number(np.frombuffer(text + b" ", np.uint8), slots, numbers, spans)
    words = [text[begin:end].decode() for begin, end in spans[:num_distinct].tolist()]
    return numbers[:num_words], words


@compiled()
def _number(text: Ints, slots: Ints, numbers: Ints, spans: Ints) -> tuple[int, int]:
    """Write to ``numbers`` that of each word, and to ``spans`` where the word of each number begins
    and ends; return how many there are of both.

    The text ends with a blank. ``slots``, a power of two of -1, become a hash table of numbers.
    """
    num_words = num_distinct = begin = mixed = 0
    for end in range(len(text)):
        if text[end] not in (SPACE, LINE_END, TAB):
            mixed = mixed * _FACTOR + text[end]
            continue
        if end > begin:
            slot = mixed & (len(slots) - 1)
            while slots[slot] >= 0 and not _is_at(text, begin, end, spans[slots[slot]]):
                slot = (slot + 1) & (len(slots) - 1)
            if slots[slot] < 0:
                slots[slot] = num_distinct
                spans[num_distinct, 0], spans[num_distinct, 1] = begin, end
                num_distinct += 1
            numbers[num_words] = slots[slot]
            num_words += 1
        begin, mixed = end + 1, 0
    return num_words, num_distinct


@compiled()
def _is_at(text: Ints, begin: int, end: int, span: Ints) -> bool:
    """Return whether a word is the one at a span before it."""
    same = 0
    while same < end - begin and text[begin + same] == text[span[0] + same]:
        same += 1
    return same == end - begin == span[1] - span[0]
