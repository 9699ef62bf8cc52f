"""N-grams packed into one integer each, and what follows from their sorted counts.

The key of an n-gram holds its tokens side by side, the first in the highest bits. So sorted keys are sorted n-grams.
If the tokens of a large vocabulary take too many bits, the key holds pairs of tokens instead. Few of all possible pairs
occur in a text; numbered in order, those take fewer bits than two tokens.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Ids, IdStream
from seqlm.ngrams.counts.sorted_runs import (
    Keys,
    MemoryRun,
    Part,
    Run,
    add_equal_keys,
    are_first,
    insert_key,
    run_lengths,
)

_KEY_BITS = 63
"""Bits of a key; the 64th is the sign."""
_HISTOGRAM_BITS = 20
"""Keys of at most this many bits are counted in an array with an entry for each possible key, without sorting."""
_PACKED_AT_ONCE = 1 << 16
"""Keys that are made at once, so that all this takes stays in the processor's cache."""
_ROWS_AT_ONCE = 1 << 20
"""Rows of a run, or tokens of a text, that are worked on at once."""


class Pairs:
    """The pairs of neighbouring tokens that occur in a stream, numbered in order.

    To find them takes ``vocab_size ** 2`` bytes.
    """

    def __init__(self, ids: IdStream, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        occurs = np.zeros(-(-(vocab_size**2) // 64) * 64, bool)
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            block = ids[start : start + _ROWS_AT_ONCE + 1].astype(np.int64)
            occurs[block[:-1] * vocab_size + block[1:]] = True
        self.first, self.second = np.divmod(np.flatnonzero(occurs), vocab_size)
        """The tokens of each pair."""
        # One bit for each possible pair, and for every 64 of them how many pairs there are before.
        self._occurs = np.packbits(occurs, bitorder="little").view("<u8")
        self._numbers = np.cumsum(np.bitwise_count(self._occurs), dtype=np.int32) - np.bitwise_count(self._occurs)

    def numbers(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the pair at each position of ``ids`` where one begins."""
        pairs = ids[:-1] * self._vocab_size + ids[1:]
        words, bits = pairs >> 6, (pairs & 63).astype(np.uint64)
        before = self._occurs[words] & ((np.uint64(1) << bits) - np.uint64(1))
        found: NDArray[np.int64] = self._numbers[words] + np.bitwise_count(before).astype(np.int64)
        return found


class Packing:
    """How the n-grams of a stream are packed into keys."""

    def __init__(self, vocab_size: int, pairs: Pairs | None = None) -> None:
        self._token_bits = _bits(vocab_size)
        self._pairs = pairs
        self._pair_bits = 2 * self._token_bits if pairs is None else _bits(len(pairs.first))

    @classmethod
    def of(cls, ids: IdStream, vocab_size: int, max_order: int, memory: int) -> Self:
        """Return a packing with which n-grams up to ``max_order`` fit, if there is one that takes so many bytes."""
        plain = cls(vocab_size)
        if plain.max_order >= max_order or vocab_size**2 > memory:
            return plain
        return cls(vocab_size, Pairs(ids, vocab_size))

    def bits(self, order: int) -> int:
        """Return the bits of a key."""
        return order // 2 * self._pair_bits + order % 2 * self._token_bits

    @property
    def max_order(self) -> int:
        """The highest order whose n-grams fit into a key."""
        return next(order for order in count(1) if self.bits(order + 1) > _KEY_BITS)

    def keys(self, ids: Ids, order: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
        """Return the key of the n-gram of an order, at least 2, at each position of ``ids`` where one begins."""
        num_keys = len(ids) - order + 1
        parts, part_bits, step = ids.astype(dtype), self._token_bits, 1
        if self._pairs is not None:
            parts, part_bits, step = self._pairs.numbers(ids.astype(np.int64)).astype(dtype), self._pair_bits, 2
        keys: NDArray[Any] = parts[:num_keys].copy()
        for offset in range(step, order - step + 1, step):
            keys <<= part_bits
            keys |= parts[offset : offset + num_keys]
        if self._pairs is not None and order % 2:
            keys <<= self._token_bits
            keys |= ids[order - 1 :].astype(dtype)
        return keys

    def split(self, keys: Keys, order: int) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys of the first n - 1 tokens, and the last tokens."""
        if self._pairs is None or order % 2:
            return keys >> self._token_bits, keys & ((1 << self._token_bits) - 1)
        pairs = keys & ((1 << self._pair_bits) - 1)
        return (keys >> self._pair_bits << self._token_bits) | self._pairs.first[pairs], self._pairs.second[pairs]


def _bits(number: int) -> int:
    """Return how many bits tell so many things apart."""
    return max((number - 1).bit_length(), 1)


def count_packed(ids: Ids, *, num_starts: int, order: int, packing: Packing) -> MemoryRun:
    """Count the n-grams of an order that begin at the first ``num_starts`` positions of ``ids``."""
    num_keys, bits = max(min(num_starts, len(ids) - order + 1), 0), packing.bits(order)
    dtype: np.dtype[Any] = np.dtype(np.uint32 if bits <= 32 else np.int64)
    blocks = (
        packing.keys(ids[start : min(start + _PACKED_AT_ONCE, num_keys) + order - 1], order, dtype)
        for start in range(0, num_keys, _PACKED_AT_ONCE)
    )
    if bits <= _HISTOGRAM_BITS:
        totals = np.zeros(1 << bits, np.int64)
        for block in blocks:
            totals += np.bincount(block, minlength=len(totals))
        keys = np.flatnonzero(totals)
        return MemoryRun(keys, totals[keys])
    packed, end = np.empty(num_keys, dtype), 0
    for block in blocks:
        packed[end : end + len(block)] = block
        end += len(block)
    return run_lengths(packed)


def prefix_counts(run: Run, ids: IdStream, order: int, packing: Packing) -> Iterator[Part]:
    """Yield the counts of order n - 1 in the stream ``ids``, which follow from the run of order n.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends with it.
    """
    last = packing.keys(np.asarray(ids[len(ids) - order + 1 :]), order - 1, np.dtype(np.int64))
    prefixes = ((packing.split(keys, order)[0], counts) for keys, counts in _parts_of(run))
    return add_equal_keys(insert_key(prefixes, int(last[0])))


def over_table_below(run: Run, below: Run | None, order: int, packing: Packing, vocab_size: int) -> Iterator[Part]:
    """Yield a run with the keys of a table: the row of the prefix in the table below, and the last token.

    ``below`` is the run of the order below; None stands for order 1, whose table has a row for every token. In other
    tables each row is the prefix of some n-gram of ``run``, except perhaps the one that the stream ends with.
    """
    row = 0
    for keys, counts in _parts_of(run):
        rows, tokens = packing.split(keys, order)
        if below is not None:
            is_new = are_first(rows)
            prefixes = rows[is_new]
            candidates, _ = below.read(row, row + len(prefixes) + 2)
            found = row + np.searchsorted(candidates, prefixes)
            row, rows = int(found[-1]), found[np.cumsum(is_new) - 1]
        yield rows * vocab_size + tokens, counts


def _parts_of(run: Run) -> Iterator[Part]:
    for start in range(0, len(run), _ROWS_AT_ONCE):
        yield run.read(start, start + _ROWS_AT_ONCE)
