"""Counts of n-grams of every order up to N, without a loop over tokens.

The n-grams of order n are the rows of a table, sorted. A row's key is
``row of its first n - 1 tokens in the table below * V + its last token``, so that keys
of any order and vocabulary fit into 64 bits, and sorting keys sorts n-grams.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlm.errors import DataError

Ids = NDArray[np.integer]
Rows = NDArray[np.int64]

_KEY_BITS = 63
"""Bits of a key that holds packed tokens; the 64th is the sign."""


@dataclass(frozen=True)
class Table:
    """All n-grams of one order; every array has one entry a row."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    suffixes: Rows
    """Row in the table below of the n-gram without its first token."""

    def find(self, keys: NDArray[np.int64]) -> Rows:
        """Return the row of each key, -1 for those that are not there or are negative."""
        if len(self.keys) == 0:
            return np.full(len(keys), -1)
        rows = np.searchsorted(self.keys, keys)
        rows[rows == len(self.keys)] = 0
        return np.where(self.keys[rows] == keys, rows, -1)


@dataclass(frozen=True)
class Counts:
    """Tables of order 1 to N over a vocabulary of V tokens; that of order 1 has a row for every token."""

    vocab_size: int
    tables: list[Table]
    starts: list[int]
    """For order n at place n - 1: the row of the n-gram that begins the text."""

    @property
    def max_order(self) -> int:
        """The highest order that was counted."""
        return len(self.tables)

    def table(self, order: int) -> Table:
        """Return the table of one order, 1 to N."""
        return self.tables[order - 1]

    def prefixes(self, order: int) -> Rows:
        """Return for each row of an order the row of its first n - 1 tokens in the table below."""
        return self.table(order).keys // self.vocab_size

    def lasts(self, order: int) -> NDArray[np.int64]:
        """Return the last token of each row of an order."""
        return self.table(order).keys % self.vocab_size

    @cached_property
    def context_totals(self) -> list[NDArray[np.int64]]:
        """For order n at place n - 1: the sum of the counts of each context's continuations."""
        totals = [np.array([self.table(1).counts.sum()])]
        for order in range(2, self.max_order + 1):
            sums = np.bincount(
                self.prefixes(order), weights=self.table(order).counts, minlength=len(self.table(order - 1).keys)
            )
            totals.append(sums.astype(np.int64))
        return totals

    def rows_of(self, ids: Ids, order: int) -> list[Rows]:
        """Return for each order up to ``order`` the row of the n-gram at every place of ``ids``, -1 if unseen.

        Entry n - 1 has shape ``(len(ids) - n + 1,)``.
        """
        wide = np.asarray(ids, np.int64)
        rows = [wide]
        for n in range(2, order + 1):
            prefix = rows[-1][: len(wide) - n + 1]
            keys = np.where(prefix >= 0, prefix * self.vocab_size + wide[n - 1 :], -1)
            rows.append(self.table(n).find(keys))
        return rows

    def children(self, order: int, context_row: int) -> tuple[NDArray[np.int64], slice]:
        """Return the tokens that follow a context, and their rows in the table of ``order``.

        ``context_row`` is a row of the table below.
        """
        keys = self.table(order).keys
        first, last = np.searchsorted(keys, [context_row * self.vocab_size, (context_row + 1) * self.vocab_size])
        return keys[first:last] % self.vocab_size, slice(int(first), int(last))

    def tokens_of(self, order: int, rows: Rows) -> NDArray[np.int64]:
        """Return the tokens of rows of an order, shape ``(len(rows), order)``."""
        columns = []
        for n in range(order, 1, -1):
            columns.append(self.lasts(n)[rows])
            rows = self.prefixes(n)[rows]
        return np.stack([rows, *reversed(columns)], axis=1)


def count_ngrams(ids: Ids, vocab_size: int, max_order: int) -> Counts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens.

    Raises DataError where the stream has fewer than ``max_order`` tokens.
    """
    if len(ids) < max_order:
        raise DataError(f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower ngrams.max_order")
    wide = np.asarray(ids, np.int64)
    unigrams = np.bincount(wide, minlength=vocab_size).astype(np.int64)
    tables = [Table(np.arange(vocab_size), unigrams, np.zeros(vocab_size, np.int64))]
    bits = max(int(vocab_size - 1).bit_length(), 1)
    for order in range(2, max_order + 1):
        fits = order * bits <= _KEY_BITS
        tables.append(_count_packed(wide, order, bits, tables) if fits else _count_ranked(wide, order, tables))
    counts = Counts(vocab_size, tables, [])
    starts = [int(rows[0]) for rows in counts.rows_of(wide[:max_order], max_order)]
    return Counts(vocab_size, tables, starts)


def _count_packed(ids: NDArray[np.int64], order: int, bits: int, tables: list[Table]) -> Table:
    """Count the n-grams of one order by sorting their tokens packed into one integer each."""
    places, packed = len(ids) - order + 1, ids[: len(ids) - order + 1].copy()
    for offset in range(1, order):
        packed <<= bits
        packed |= ids[offset : offset + places]
    packed.sort()
    borders = np.flatnonzero(np.concatenate([[True], packed[1:] != packed[:-1]]))
    distinct = packed[borders]
    counts = np.diff(borders, append=places)
    mask = (1 << bits) - 1
    # Only the distinct n-grams are looked up in the tables below, not every place of the text.
    columns = [(distinct >> (bits * (order - 1 - column))) & mask for column in range(order)]
    prefixes, suffixes = _rows(columns[:-1], tables), _rows(columns[1:], tables)
    return Table(prefixes * len(tables[0].keys) + columns[-1], counts.astype(np.int64), suffixes)


def _rows(columns: list[NDArray[np.int64]], tables: list[Table]) -> Rows:
    """Return the rows of n-grams that are all in the tables; one column a token."""
    rows = columns[0]
    for table, column in zip(tables[1:], columns[1:], strict=False):
        rows = np.searchsorted(table.keys, rows * len(tables[0].keys) + column)
    return rows


def _count_ranked(ids: NDArray[np.int64], order: int, tables: list[Table]) -> Table:
    """Count the n-grams of one order whose tokens are too wide to be packed: by keys over the table below."""
    vocab_size, places = len(tables[0].keys), len(ids) - order + 1
    below = _rows([ids[offset : offset + places + 1] for offset in range(order - 1)], tables)
    all_keys = below[:places] * vocab_size + ids[order - 1 :]
    keys, rows, counts = np.unique(all_keys, return_inverse=True, return_counts=True)
    suffixes = np.empty(len(keys), np.int64)
    suffixes[rows] = below[1:]
    return Table(keys, counts.astype(np.int64), suffixes)


def by_frequency(ids: Ids, counts: Counts, order: int, limit: int | None = None) -> Rows:
    """Return the rows of an order by falling count, ties by first appearance in the text that was counted.

    Rows that never occur stay away.
    """
    rows = counts.rows_of(ids, order)[-1]
    firsts = np.full(len(counts.table(order).keys), len(rows))
    # The last of several assignments stands: going backwards, that is the first place.
    firsts[rows[::-1]] = np.arange(len(rows))[::-1]
    found = counts.table(order).counts
    ranked = np.lexsort((firsts, -found))
    return ranked[found[ranked] > 0][:limit]
