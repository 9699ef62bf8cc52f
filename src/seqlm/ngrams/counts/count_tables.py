"""Counts of n-grams of every order up to N, and looking them up without a loop over tokens.

The n-grams of order n are the rows of a table, sorted. A row's key is
``row of its first n - 1 tokens in the table below * V + its last token``, so that keys
of any order and vocabulary fit into 64 bits, and sorting keys sorts n-grams. The tables
of a large text may lie in files that are mapped into memory, in the smallest types that
hold them; whoever works on all rows of a table takes them in blocks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.parallel import for_each

Ids = NDArray[np.integer]
Rows = NDArray[np.int64]
Probs = NDArray[np.float64]
_Finder = Callable[[Rows, Rows], Rows]

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
        """Yield the rows of an order in blocks that part no context: rows of equal prefixes lie in one block.

        So blocks can be worked on side by side, and each sums up contexts of its own.
        """
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
        return self._parts(order, rows)[0]

    def lasts(self, order: int, rows: slice = slice(None)) -> NDArray[np.int64]:
        """Return the last token of each row of an order."""
        return self._parts(order, rows)[1]

    def _parts(self, order: int, rows: Rows | slice) -> tuple[Rows, NDArray[np.int64]]:
        """Return for each row of an order what its key is made of: the row of the prefix, and the last token."""
        keys = self.table(order).keys[rows].astype(np.int64)
        prefixes = keys // self.vocab_size
        # NumPy divides by one number fast, but is slow to find what such a division leaves.
        keys -= prefixes * self.vocab_size
        return prefixes, keys

    def suffixes(self, order: int) -> NDArray[Any]:
        """Return for each row of an order the row of its last n - 1 tokens in the table below.

        At order 1 that is row 0 of a table that holds the empty n-gram alone.
        """
        if order not in self._suffixes:
            num_below = 1 if order == 1 else len(self.table(order - 1))
            found = np.zeros(len(self.table(order)), np.min_scalar_type(num_below))
            if order > 1:
                find, below = self._finder_of_children(order - 1), self.suffixes(order - 1)

                def fill(rows: slice) -> None:
                    # They are the last n - 2 tokens of the prefix, and the last token.
                    prefixes, lasts = self._parts(order, rows)
                    found[rows] = find(below[prefixes].astype(np.int64), lasts)

                for_each(fill, self.blocks(order))
            self._suffixes[order] = found
        return self._suffixes[order]

    def _finder_of_children(self, order: int) -> _Finder:
        """Return a function that gives the rows of an order by prefixes, rows of the table below, and last tokens."""
        table, size = self.table(order), self.vocab_size
        if order == 1:
            return lambda _, lasts: lasts
        if len(table) < _LARGE:
            return lambda prefixes, lasts: table.find(prefixes * size + lasts)
        from seqlm.ngrams.counts.kernels import find_children

        keys, firsts = np.asarray(table.keys), self._first_children(order)
        return lambda prefixes, lasts: find_children(keys, firsts, prefixes, lasts, size)

    def _first_children(self, order: int) -> Rows:
        """Return for each row of the table below the first row of an order that it is the prefix of, and the end."""
        numbers = np.zeros(len(self.table(order - 1)) + 1, np.int64)

        def count(rows: slice) -> None:
            prefixes = self.prefixes(order, rows)
            firsts = np.flatnonzero(np.diff(prefixes, prepend=-1))
            numbers[prefixes[firsts] + 1] = np.diff(firsts, append=len(prefixes))

        for_each(count, self.blocks(order))
        return np.cumsum(numbers)

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
            rows, lasts = self._parts(n, rows)
            columns.append(lasts)
        return np.stack([rows, *reversed(columns)], axis=1)
