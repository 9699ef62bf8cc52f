"""Compiled loops for the n-grams of large texts.

Most write to arrays that they are given: to load a function that makes arrays, Numba imports more
of itself.
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
_NUL, _RETURN, _BACKSLASH = 0, ord("\r"), ord("\\")
_NINE, _PLUS, _EXPONENT = np.uint64(ord("9")), ord("+"), ord("e")
_MINUS_INFINITY = np.frombuffer(b"-inf", np.uint8)
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF2_9CE4_8422_2325), np.uint64(0x100_0000_01B3)
DECIMALS = 8
"""Of the logarithms in an ARPA file."""
NEVER = -99.0
"""The logarithm of probability zero there."""
_LEAST = 10**NEVER
_UNITS_OF_LOG = -(10**DECIMALS) / math.log(10)
"""Natural logarithms as multiples of minus the last decimal."""


@compiled(nogil=True)
def radix_sorted(keys: Longs, spare: Longs, num_bits: int) -> Longs:
    """Return keys in ascending order, in one of two arrays, which both change.

    A key has at most ``num_bits`` bits. Several times as fast as NumPy, which compares keys.
    """
    for shift in range(0, num_bits, 8):
        ends = np.zeros(257, np.int64)
        for key in keys:
            ends[((key >> shift) & 255) + 1] += 1
        for digit in range(256):
            ends[digit + 1] += ends[digit]
        for key in keys:
            digit = (key >> shift) & 255
            spare[ends[digit]] = key
            ends[digit] += 1
        keys, spare = spare, keys
    return keys


@compiled(nogil=True)
def find_continuations(
    keys: Longs, firsts: Longs, prefixes: Longs, tokens: Longs, vocab_size: int, found: Longs
) -> None:
    """Write to ``found`` the row of each prefix and last token among the rising ``keys`` of a
    table, -1 if not there.

    The rows that continue prefix p are those from ``firsts[p]`` up to ``firsts[p + 1]``. It is fast
    if equal prefixes come together and their tokens rise.
    """
    low = end = 0
    last_key, last_prefix = -1, -1
    for index in range(len(prefixes)):
        prefix = prefixes[index]
        key = prefix * vocab_size + tokens[index]
        if prefix != last_prefix or key < last_key:
            low, end = firsts[prefix], firsts[prefix + 1]
        last_key, last_prefix = key, prefix
        # Galloping search: growing strides, then bisection, because a rising key is close to the
        # one before it.
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


@compiled(nogil=True)
def backoff_probs(
    ids: Longs,
    positions: Longs,
    keys: tuple[Longs, ...],
    listed: tuple[Floats, ...],
    backoffs: tuple[Floats, ...],
    rows: Longs,
    probs: Floats,
) -> float:
    """Write to ``probs`` the probability of each token but the first under a backoff model; return
    the largest.

    ``keys``, ``listed`` and ``backoffs`` have the keys, probabilities and weights of the n-grams of
    order n at index n - 1. A token sees as many before it as its position in its text says.
    ``rows``, shape ``(2, N)``, is written to.
    """
    vocab_size, order, largest = len(keys[0]), len(keys), 0.0
    for index in range(len(ids)):
        # Rows of the n-grams that end with the token before, and of those that end with this one.
        contexts, ending = rows[index % 2], rows[1 - index % 2]
        ending[0] = ids[index]
        prob = listed[0][ids[index]]
        for n in range(1, order):
            context = contexts[n - 1] if positions[index] >= n else -1
            ending[n] = -1
            if context >= 0:
                key = context * vocab_size + ids[index]
                # NumPy's own search takes longer to load.
                row, end = 0, len(keys[n])
                while row < end:
                    middle = (row + end) // 2
                    if keys[n][middle] < key:
                        row = middle + 1
                    else:
                        end = middle
                if row < len(keys[n]) and keys[n][row] == key:
                    ending[n], prob = row, listed[n][row]
                else:
                    prob *= backoffs[n - 1][context]
        if index:
            probs[index - 1] = prob
            largest = max(largest, prob)
    return largest


@compiled(nogil=True, error_model="numpy")
def write_lines(
    probs: Floats, tokens: Longs, weights: Floats, letters: Bytes, starts: Longs, text: Bytes
) -> int:
    """Write the lines of some n-grams in the ARPA format to ``text``, and return how many bytes
    they take.

    ``tokens`` has one n-gram per row, and token t is written as the ``letters`` from ``starts[t]``
    to ``starts[t + 1]``. ``weights`` is empty at the highest order.
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
    """Write log10 of a probability as ``-D.DDDDDDDD`` or ``-DD.DDDDDDDD`` at ``end``; return where
    it ends."""
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


@compiled(nogil=True)
def skip_blank_lines(text: Bytes, position: int) -> int:
    """Return where the first line from a position on begins that is not blank."""
    while position < len(text) and _is_separator(text[position]):
        position += 1
    return position


@compiled(nogil=True)
def read_lines(
    text: Bytes, position: int, logs: Floats, words: Longs, spans: Longs
) -> tuple[int, int, bool]:
    """Read lines of n-grams in the ARPA format from a position on, at most as many as ``logs`` has
    rows.

    For each line, writes its two logarithms to ``logs``, 0 for a missing weight, the hashes of its
    words to ``words``, and where its first word begins and ends to ``spans``. Returns how many
    lines were read, the position of the next line, which is a section's if it begins with a
    backslash, and whether the line there is no n-gram.
    """
    order, rows = words.shape[1], 0
    while rows < len(logs):
        position = line = skip_blank_lines(text, position)
        if position == len(text) or text[position] == _BACKSLASH:
            break
        logs[rows, 0], position = _number(text, position)
        for word in range(order if position >= 0 else 0):
            position = begin = _after_blanks(text, position)
            mixed = _FNV_BASIS
            while position < len(text) and not _is_separator(text[position]):
                mixed = (mixed ^ np.uint64(text[position])) * _FNV_PRIME
                position += 1
            if position == begin:
                return rows, line, True
            words[rows, word] = mixed
            if word == 0:
                spans[rows, 0], spans[rows, 1] = begin, position
        position, logs[rows, 1] = _after_blanks(text, position), 0.0
        if 0 <= position < len(text) and text[position] != _LINE_END:
            logs[rows, 1], position = _number(text, position)
            position = _after_blanks(text, position)
        if position < 0 or (position < len(text) and text[position] != _LINE_END):
            return rows, line, True
        rows += 1
    return rows, position, False


@compiled(nogil=True)
def _is_separator(byte: int) -> bool:
    """Return whether a byte separates fields or lines; these are KenLM's, and others may be part of
    a word."""
    return byte in (_SPACE, _TAB, _LINE_END, _RETURN, _NUL)


@compiled(nogil=True)
def _after_blanks(text: Bytes, position: int) -> int:
    """Return where the separators of fields from a position on end; -1 for -1."""
    while (
        0 <= position < len(text) and text[position] != _LINE_END and _is_separator(text[position])
    ):
        position += 1
    return position


@compiled(nogil=True)
def _number(text: Bytes, position: int) -> tuple[float, int]:
    """Return the number at a position, which may be minus infinity, and where it ends, -1 if there
    is none."""
    digits, decimals, end = _decimal(text, position)
    if end < 0 <= position <= len(text) - len(_MINUS_INFINITY):
        digits, end = -np.inf, position + len(_MINUS_INFINITY)
        for index in range(len(_MINUS_INFINITY)):
            if text[position + index] | 0x20 != _MINUS_INFINITY[index] | 0x20:
                end = -1
    elif 0 <= end < len(text) and (text[end] | 0x20) == _EXPONENT:
        exponent, _, end = _decimal(text, end + 1)
        decimals -= int(exponent)
    if end < 0 or (end < len(text) and not _is_separator(text[end])):
        return 0.0, -1
    # With up to 15 digits and powers up to 22 both are exact, so the result is the nearest number.
    return digits / 10.0**decimals if decimals > 0 else digits * 10.0**-decimals, end


@compiled(nogil=True)
def _decimal(text: Bytes, position: int) -> tuple[float, int, int]:
    """Return the digits at a position as a number, how many of them follow a point, and where they
    end, -1 for none."""
    sign, digits, num_digits, point = 1.0, 0.0, 0, -1
    if position < len(text) and (text[position] == _MINUS or text[position] == _PLUS):
        sign = -1.0 if text[position] == _MINUS else 1.0
        position += 1
    while position < len(text):
        if _ZERO <= text[position] <= _NINE:
            digits = digits * 10 + (text[position] - _ZERO)
            num_digits += 1
        elif text[position] == _POINT and point < 0:
            point = position
        else:
            break
        position += 1
    return sign * digits, position - point - 1 if point >= 0 else 0, position if num_digits else -1
