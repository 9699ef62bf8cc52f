"""N-grams packed into one integer each, counting them, and what follows from the counts of the longest ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import IDS_AT_ONCE, Ids, IdStream, NgramCounts
from seqlm.ngrams.counts.sorted_counts import (
    CountsInMemory,
    Keys,
    Part,
    SortedCounts,
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


class Pairs:
    """The pairs of neighbouring tokens that occur in a stream, numbered in order.

    To find them takes ``vocab_size ** 2`` bytes.
    """

    def __init__(self, ids: IdStream, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        occurs = np.zeros(-(-(vocab_size**2) // 64) * 64, bool)
        for start in range(0, len(ids), IDS_AT_ONCE):
            block = ids[start : start + IDS_AT_ONCE + 1].astype(np.int64)
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


@dataclass(frozen=True)
class Packing:
    """How the n-grams of a stream are packed into keys."""

    token_bits: int
    pairs: Pairs | None = None
    """If there are any, pairs of tokens are packed, not single tokens."""

    @classmethod
    def of(cls, ids: IdStream, vocab_size: int, max_order: int, memory: int) -> Self:
        """Return a packing with which n-grams up to ``max_order`` fit, if one takes at most ``memory`` bytes."""
        plain = cls(bits_of(vocab_size))
        if plain.max_order >= max_order or vocab_size**2 > memory:
            return plain
        return cls(plain.token_bits, Pairs(ids, vocab_size))

    @cached_property
    def pair_bits(self) -> int:
        """The bits of two tokens."""
        return 2 * self.token_bits if self.pairs is None else bits_of(len(self.pairs.first))

    def bits(self, order: int) -> int:
        """Return the bits of a key."""
        return order // 2 * self.pair_bits + order % 2 * self.token_bits

    @property
    def max_order(self) -> int:
        """The highest order whose n-grams fit into a key."""
        return next(order for order in count(1) if self.bits(order + 1) > _KEY_BITS)

    def keys(self, ids: Ids, order: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
        """Return the key of the n-gram of an order at each position of ``ids`` where one begins."""
        if order == 1:
            return ids.astype(dtype)
        num_keys = len(ids) - order + 1
        parts, part_bits, step = ids.astype(dtype), self.token_bits, 1
        if self.pairs is not None:
            parts, part_bits, step = self.pairs.numbers(ids.astype(np.int64)).astype(dtype), self.pair_bits, 2
        keys: NDArray[Any] = parts[:num_keys].copy()
        for offset in range(step, order - step + 1, step):
            keys <<= part_bits
            keys |= parts[offset : offset + num_keys]
        if self.pairs is not None and order % 2:
            keys <<= self.token_bits
            keys |= ids[order - 1 :].astype(dtype)
        return keys

    def split(self, keys: Keys, order: int) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys of the first n - 1 tokens, and the last tokens."""
        if self.pairs is None or order % 2:
            return keys >> self.token_bits, keys & ((1 << self.token_bits) - 1)
        pairs = keys & ((1 << self.pair_bits) - 1)
        return (keys >> self.pair_bits << self.token_bits) | self.pairs.first[pairs], self.pairs.second[pairs]


def bits_of(number: int) -> int:
    """Return how many bits tell so many things apart."""
    return max((number - 1).bit_length(), 1)


def count_packed(ids: Ids, *, order: int, packing: Packing) -> CountsInMemory:
    """Count the n-grams of an order."""
    num_keys, bits = max(len(ids) - order + 1, 0), packing.bits(order)
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
        return CountsInMemory(keys, totals[keys])
    packed, end = np.empty(num_keys, dtype), 0
    for block in blocks:
        packed[end : end + len(block)] = block
        end += len(block)
    return run_lengths(packed)


def last_key(ids: IdStream, order: int, packing: Packing) -> int:
    """Return the key of the n-gram that a stream ends with."""
    return int(packing.keys(np.asarray(ids[len(ids) - order :]), order, np.dtype(np.int64))[0])


def prefix_counts(sorted_counts: SortedCounts, order: int, packing: Packing, end: int | None) -> Iterator[Part]:
    """Yield the counts of order n - 1 in a stream, which follow from those of order n.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends with it: ``end`` is
    the key of the one that the stream ends with, None if it is not among these.
    """
    prefixes = ((packing.split(keys, order)[0], counts) for keys, counts in parts_of(sorted_counts))
    return add_equal_keys(insert_key(prefixes, end))


def over_table_below(
    sorted_counts: SortedCounts,
    below: SortedCounts | None,
    order: int,
    packing: Packing,
    vocab_size: int,
    first_row: int = 0,
) -> Iterator[Part]:
    """Yield sorted counts with the keys of a table: the row of the prefix in the table below, and the last token.

    ``below`` has those of the order below, or a part of them that begins at ``first_row`` of that table; None stands
    for order 1, whose table has a row for every token. From the first prefix on, each row below is the prefix of some
    n-gram of ``sorted_counts``, except perhaps the one that the stream ends with.
    """
    row = None
    for keys, counts in parts_of(sorted_counts):
        rows, tokens = packing.split(keys, order)
        if below is not None:
            is_new = are_first(rows)
            prefixes = rows[is_new]
            if row is None:
                row = int(np.searchsorted(below.mapped()[0], prefixes[0]))
            row += int(np.searchsorted(below.read(row, row + 2)[0], prefixes[0]))
            candidates, _ = below.read(row, row + len(prefixes))
            # From the row on that is no prefix, rows are one further.
            found = np.arange(row, row + len(prefixes)) + (candidates < prefixes)
            row, rows = int(found[-1]), found[np.cumsum(is_new) - 1] + first_row
        yield rows * vocab_size + tokens, counts


def count_over_tables(tables: Sequence[SortedCounts], vocab_size: int, ids: Ids) -> CountsInMemory:
    """Count the n-grams of the order above the tables, which begin with order 2; keys are those of a table."""
    unigrams = np.arange(vocab_size), np.zeros(vocab_size, np.int8)
    counts = NgramCounts([unigrams, *(table.mapped() for table in tables)])
    prefixes = counts.rows_of(ids, counts.max_order)[-1][:-1]
    return run_lengths(prefixes * vocab_size + ids[counts.max_order :])


def parts_of(sorted_counts: SortedCounts) -> Iterator[Part]:
    """Yield all of the sorted counts, a part at a time."""
    for start in range(0, len(sorted_counts), IDS_AT_ONCE):
        yield sorted_counts.read(start, start + IDS_AT_ONCE)
