"""Counts of n-grams of every order up to N, and looking them up without a loop over tokens.

The n-grams of order n are the rows of a table, sorted. A row's key is
``row of its first n - 1 tokens in the table below * V + its last token``, so that keys
of any order and vocabulary fit into 64 bits, and sorting keys sorts n-grams. The tables
of a large text may lie in files that are mapped into memory.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer]
Rows = NDArray[np.int64]

_BLOCK_ROWS = 1 << 20
"""Rows of a table that are worked on at once, so that tables in files need no memory of their own."""


@dataclass(frozen=True)
class Table:
    """All n-grams of one order; every array has one entry a row."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

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
    _suffixes: dict[int, Rows] = field(default_factory=dict, repr=False, compare=False)

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

    def suffixes(self, order: int) -> Rows:
        """Return for each row of an order the row of its last n - 1 tokens in the table below.

        At order 1 that is row 0 of a table that holds the empty n-gram alone.
        """
        if order not in self._suffixes:
            if order == 1:
                rows = np.zeros(self.vocab_size, np.int64)
            else:
                # The last n - 1 tokens are the last n - 2 of the prefix, and the last token.
                keys = self.suffixes(order - 1)[self.prefixes(order)] * self.vocab_size + self.lasts(order)
                rows = self.table(order - 1).find(keys)
            self._suffixes[order] = rows
        return self._suffixes[order]

    @cached_property
    def context_totals(self) -> list[NDArray[np.int64]]:
        """For order n at place n - 1: the sum of the counts of each context's continuations."""
        totals = [np.array([self.table(1).counts.sum()])]
        for order in range(2, self.max_order + 1):
            table, sums = self.table(order), np.zeros(len(self.table(order - 1).keys), np.int64)
            for start in range(0, len(table.keys), _BLOCK_ROWS):
                # Rows with equal prefixes lie side by side.
                contexts = table.keys[start : start + _BLOCK_ROWS] // self.vocab_size
                firsts = np.flatnonzero(np.diff(contexts, prepend=-1))
                sums[contexts[firsts]] += np.add.reduceat(table.counts[start : start + _BLOCK_ROWS], firsts)
            totals.append(sums)
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
            keys = self.table(n).keys[rows]
            columns.append(keys % self.vocab_size)
            rows = keys // self.vocab_size
        return np.stack([rows, *reversed(columns)], axis=1)
