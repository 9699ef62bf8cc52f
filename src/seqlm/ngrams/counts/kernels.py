"""Compiled loops for the n-grams of large texts.

Most write to arrays that they are given: to load a function that makes arrays, Numba imports more of itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from seqlm.core.compiling import compiled
from seqlm.core.elementary import Floats, log_of

Longs = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_ZERO, _MINUS, _POINT = np.uint64(ord("0")), ord("-"), ord(".")
_TAB, _SPACE, _LINE_END = ord("\t"), ord(" "), ord("\n")
_TEN = np.uint64(10)
DECIMALS = 8
"""Of the logarithms in an ARPA file."""
NEVER = -99.0
"""The logarithm of probability zero there."""
_LEAST = 10**NEVER
_UNITS_OF_LOG = -(10**DECIMALS) / math.log(10)
"""Natural logarithms as multiples of minus the last decimal."""


@compiled(nogil=True)
def find_continuations(
    keys: Longs, firsts: Longs, prefixes: Longs, tokens: Longs, vocab_size: int, found: Longs
) -> None:
    """Write to ``found`` the row of each prefix and last token among the rising ``keys`` of a table, -1 if not there.

    The rows that continue prefix p are those from ``firsts[p]`` up to ``firsts[p + 1]``. It is fast if equal prefixes
    come together and their tokens rise.
    """
    low = end = 0
    last_key, last_prefix = -1, -1
    for index in range(len(prefixes)):
        prefix = prefixes[index]
        key = prefix * vocab_size + tokens[index]
        if prefix != last_prefix or key < last_key:
            low, end = firsts[prefix], firsts[prefix + 1]
        last_key, last_prefix = key, prefix
        # Galloping search: growing strides, then bisection, because a rising key is close to the one before it.
        stride = 1
        while low + stride < end and keys[low + stride] <= key:
            low += stride
            stride *= 2
        high = min(low + stride, end)
        while high - low > 1:
            middle = (low + high) // 2
            if keys[middle] <= key:
                low = middle
            else:
                high = middle
        found[index] = low if low < end and keys[low] == key else -1


@compiled(nogil=True, error_model="numpy")
def write_lines(probs: Floats, tokens: Longs, weights: Floats, letters: Bytes, starts: Longs, text: Bytes) -> int:
    """Write the lines of some n-grams in the ARPA format to ``text``, and return how many bytes they take.

    ``tokens`` has one n-gram per row, and token t is written as the ``letters`` from ``starts[t]`` to
    ``starts[t + 1]``. ``weights`` is empty at the highest order.
    """
    end = 0
    for row in range(len(probs)):
        end = _write_logarithm(probs[row], text, end)
        for column in range(tokens.shape[1]):
            text[end] = _SPACE if column else _TAB
            end += 1
            token = tokens[row, column]
            for letter in range(starts[token], starts[token + 1]):
                text[end] = letters[letter]
                end += 1
        # The format lets a weight of one be left out.
        if len(weights) and weights[row] < 1:
            text[end] = _TAB
            end = _write_logarithm(weights[row], text, end + 1)
        text[end] = _LINE_END
        end += 1
    return end


@compiled(nogil=True, error_model="numpy")
def _write_logarithm(prob: float, text: Bytes, end: int) -> int:
    """Write log10 of a probability as ``-D.DDDDDDDD`` or ``-DD.DDDDDDDD`` at ``end``; return where it ends."""
    rest = np.uint64(np.rint(log_of(min(max(prob, _LEAST), 1.0)) * _UNITS_OF_LOG))
    point = end + (3 if rest >= 10 ** (DECIMALS + 1) else 2)
    for position in range(point + DECIMALS, end, -1):
        if position == point:
            text[position] = _POINT
        else:
            text[position] = _ZERO + rest % _TEN
            rest //= _TEN
    text[end] = _MINUS
    return point + DECIMALS + 1
