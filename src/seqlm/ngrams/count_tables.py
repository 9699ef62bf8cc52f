"""Counts of n-grams of every order up to N, and looking them up without a loop over tokens.

The n-grams of order n are the rows of a table, sorted. A row's key is
``row of its first n - 1 tokens in the table below * V + its last token``, so that keys
of any order and vocabulary fit into 64 bits, and sorting keys sorts n-grams. The tables
of a large text may lie in files that are mapped into memory, in the smallest types that
hold them; whoever works on all rows of a table takes them in blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer]
Rows = NDArray[np.int64]
Probs = NDArray[np.float64]

BLOCK_ROWS = 1 << 20
"""Rows of a table that are worked on at once, so that tables in files need no memory of their own."""
_LARGE = 1 << 16
"""Rows of a table too large for the processor's cache. Keys that are looked up there are sorted before, so that the
search goes through the table from one end to the other."""


@dataclass(frozen=True)
class Table:
    """All n-grams of one order; every array has one entry a row, of any integer type."""

    keys: NDArray[np.integer]
    counts: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: NDArray[np.int64]) -> Rows:
        """Return the row of each key, -1 for those that are not there or are negative."""
        found = np.full(len(keys), -1)
        for start in range(0, len(keys) if len(self) else 0, BLOCK_ROWS):
            block = keys[start : start + BLOCK_ROWS]
            if len(self) < _LARGE or len(block) < _LARGE or (block[1:] >= block[:-1]).all():
                found[start : start + BLOCK_ROWS] = self._search(block)
            else:
                order = np.argsort(block)
                found[start + order] = self._search(block[order])
        return found

    def _search(self, keys: NDArray[np.int64]) -> Rows:
        # Keys outside of the table may not fit into the type of those inside.
        is_inside = (keys >= 0) & (keys <= int(self.keys[-1]))
        sought = np.where(is_inside, keys, 0).astype(self.keys.dtype)
        rows = np.searchsorted(self.keys, sought)
        return np.where(is_inside & (self.keys[rows] == sought), rows, -1)

    def first_row(self, key: int) -> int:
        """Return the first row whose key is at least ``key``."""
        if len(self) == 0 or key > int(self.keys[-1]):
            return len(self)
        return int(np.searchsorted(self.keys, self.keys.dtype.type(key)))


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

    def blocks(self, order: int) -> Iterator[slice]:
        """Yield the rows of an order in blocks that part no context: rows of equal prefixes lie in one block."""
        table, start = self.table(order), 0
        while start < len(table):
            stop = min(start + BLOCK_ROWS, len(table))
            if stop < len(table) and order > 1:
                stop = table.first_row((int(table.keys[stop]) // self.vocab_size) * self.vocab_size)
                if stop <= start:  # one context fills the block
                    stop = table.first_row((int(table.keys[start]) // self.vocab_size + 1) * self.vocab_size)
            yield slice(start, stop)
            start = stop

    def prefixes(self, order: int, rows: slice = slice(None)) -> Rows:
        """Return for each row of an order the row of its first n - 1 tokens in the table below."""
        return self._wide_keys(order, rows) // self.vocab_size

    def lasts(self, order: int, rows: slice = slice(None)) -> NDArray[np.int64]:
        """Return the last token of each row of an order."""
        return self._wide_keys(order, rows) % self.vocab_size

    def _wide_keys(self, order: int, rows: slice) -> NDArray[np.int64]:
        return self.table(order).keys[rows].astype(np.int64)

    def suffix_keys(self, order: int, rows: slice) -> NDArray[np.int64]:
        """Return for each row of an order, 2 or higher, the key of its last n - 1 tokens in the table below."""
        # They are the last n - 2 tokens of the prefix, and the last token.
        below = self.suffixes(order - 1)[self.prefixes(order, rows)].astype(np.int64)
        below *= self.vocab_size
        below += self.lasts(order, rows)
        return below

    def suffixes(self, order: int) -> NDArray[Any]:
        """Return for each row of an order the row of its last n - 1 tokens in the table below.

        At order 1 that is row 0 of a table that holds the empty n-gram alone.
        """
        if order not in self._suffixes:
            num_below = 1 if order == 1 else len(self.table(order - 1))
            found = np.zeros(len(self.table(order)), np.min_scalar_type(num_below))
            if order > 1:
                for rows in self.blocks(order):
                    found[rows] = self.table(order - 1).find(self.suffix_keys(order, rows))
            self._suffixes[order] = found
        return self._suffixes[order]

    @cached_property
    def context_totals(self) -> list[NDArray[np.int64]]:
        """For order n at place n - 1: the sum of the counts of each context's continuations."""
        totals = [np.array([self.table(1).counts.sum(dtype=np.int64)])]
        for order in range(2, self.max_order + 1):
            table, sums = self.table(order), np.zeros(len(self.table(order - 1)), np.int64)
            for rows in self.blocks(order):
                contexts = self.prefixes(order, rows)
                firsts = np.flatnonzero(np.diff(contexts, prepend=-1))
                sums[contexts[firsts]] = np.add.reduceat(table.counts[rows], firsts, dtype=np.int64)
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
        table, first_key = self.table(order), int(context_row) * self.vocab_size
        rows = slice(table.first_row(first_key), table.first_row(first_key + self.vocab_size))
        return self.lasts(order, rows), rows

    def tokens_of(self, order: int, rows: Rows) -> NDArray[np.int64]:
        """Return the tokens of rows of an order, shape ``(len(rows), order)``."""
        columns = []
        for n in range(order, 1, -1):
            keys = self.table(n).keys[rows].astype(np.int64)
            columns.append(keys % self.vocab_size)
            rows = keys // self.vocab_size
        return np.stack([rows, *reversed(columns)], axis=1)
