"""Tables of n-grams with their counts, and looking n-grams up without a Python loop over tokens.

The n-grams of order n are the rows of a table, sorted. The key of a row is ``row of its first n - 1
tokens in the table below * V + its last token``. So keys of any order and vocabulary fit into 64
bits, and sorted keys are sorted n-grams. The tables of a large text may be files mapped into
memory, in the smallest integer types that hold them, so code that works on all rows of a table
takes them in blocks.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlm.core.threads import for_each

Ids = NDArray[np.integer]
Rows = NDArray[np.int64]
Probs = NDArray[np.float64]


IDS_AT_ONCE = 1 << 20
"""Tokens of a text that are worked on at once."""
BLOCK_ROWS = 1 << 18
"""Rows of a table that are worked on at once, so that a mapped table needs little memory of its
own."""
_LARGE = 1 << 16
"""Rows of a table that no longer fits into the processor's cache. Keys are sorted before they are
looked up there, so that the search goes through the table from one end to the other."""


@dataclass(frozen=True, eq=False)
class Table:
    """All n-grams of one order. Both arrays have one entry per row, of any integer type."""

    keys: NDArray[np.integer]
    counts: NDArray[np.integer]
    below: "Table | None"
    """The table of order n - 1; order 1 has none, and a row for every token of the vocabulary."""

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def vocab_size(self) -> int:
        """V, the number of tokens in the vocabulary."""
        return len(self) if self.below is None else self.below.vocab_size

    def find(self, prefixes: Rows, tokens: NDArray[np.int64]) -> Rows:
        """Return the row of each n-gram, given the row of its prefix and its last token; -1 if
        there is none.

        A prefix of -1 is one that the table below does not have.
        """
        rows = np.full(len(tokens), -1)
        for start in range(0, len(tokens) if len(self) else 0, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            keys = prefixes[block] * self.vocab_size + tokens[block]
            if len(self) < _LARGE or len(keys) < _LARGE or (keys[1:] >= keys[:-1]).all():
                rows[block] = self._search(keys)
            else:
                order = np.argsort(keys)
                rows[start + order] = self._search(keys[order])
        return rows

    def _search(self, keys: NDArray[np.int64]) -> Rows:
        # Keys outside the table may not fit into the type of those inside.
        inside = np.clip(keys, 0, int(self.keys[-1])).astype(self.keys.dtype)
        rows = np.searchsorted(self.keys, inside)
        return np.where(self.keys[rows] == keys, rows, -1)

    def continuations(self, prefix: int) -> tuple[NDArray[np.int64], slice]:
        """Return the tokens that follow a row of the table below, and the rows of these n-grams."""
        # Not by NumPy: it would convert a mapped table to the type of a key that is larger than all
        # in it.
        first, last = (
            bisect_left(self.keys, key * self.vocab_size) for key in (prefix, prefix + 1)
        )
        rows = slice(first, last)
        return self.split(rows)[1], rows

    def split(self, rows: Rows | slice = slice(None)) -> tuple[Rows, NDArray[np.int64]]:
        """Return, for some rows, the row of the prefix in the table below, 0 at order 1, and the
        last token."""
        keys = self.keys[rows].astype(np.int64)
        prefixes = keys // self.vocab_size
        # NumPy divides by a single number fast, but is slow to find the remainder.
        keys -= prefixes * self.vocab_size
        return prefixes, keys

    def tokens_of(self, rows: Rows) -> NDArray[np.int64]:
        """Return the tokens of some rows, shape ``(len(rows), order)``."""
        columns, table = [], self
        while table.below is not None:
            rows, tokens = table.split(rows)
            columns.append(tokens)
            table = table.below
        return np.stack([rows, *reversed(columns)], axis=1)

    def blocks(self) -> list[slice]:
        """Return the rows in blocks."""
        return [
            slice(start, min(start + BLOCK_ROWS, len(self)))
            for start in range(0, len(self), BLOCK_ROWS)
        ]

    def sum_by_context(self, values: Callable[[slice], NDArray[np.number]]) -> Probs:
        """Return, for each row of the table below, the sum of ``values(rows)`` over the n-grams
        that continue it.

        At order 1 there is one context, the empty one.
        """
        sums = np.zeros(1 if self.below is None else len(self.below))
        for rows in self.blocks():
            prefixes = self.split(rows)[0]
            first, last = int(prefixes[0]), int(prefixes[-1]) + 1
            # What the block before began goes on, so that every sum is that of all its values in
            # turn.
            prefixes, parts = np.append(0, prefixes - first), np.append(sums[first], values(rows))
            sums[first:last] = np.bincount(prefixes, parts, last - first)
        return sums

    @cached_property
    def context_totals(self) -> NDArray[np.int64]:
        """For each row of the table below, the sum of the counts of its continuations."""
        return self.sum_by_context(lambda rows: self.counts[rows]).astype(np.int64)

    @cached_property
    def suffix_rows(self) -> NDArray[np.integer]:
        """For each row, the row of its last n - 1 tokens in the table below; 0 at order 1."""
        below = self.below
        suffixes = np.zeros(len(self), np.min_scalar_type(1 if below is None else len(below)))
        if below is not None:
            find, suffixes_below = below._fast_find(), below.suffix_rows

            def fill(rows: slice) -> None:
                # The suffix of an n-gram is the suffix of its prefix, then its last token.
                prefixes, tokens = self.split(rows)
                suffixes[rows] = find(suffixes_below[prefixes].astype(np.int64), tokens)

            for_each(fill, ((rows,) for rows in self.blocks()))
        return suffixes

    def _fast_find(self) -> Callable[[Rows, NDArray[np.int64]], Rows]:
        """Return a function that does what :meth:`find` does, faster for prefixes that exist and
        are nearly sorted."""
        if self.below is None:
            return lambda _, tokens: tokens
        if len(self) < _LARGE:
            return self.find
        from seqlm.ngrams.counts.kernels import find_continuations

        keys, vocab_size = np.asarray(self.keys), self.vocab_size
        firsts = np.zeros(len(self.below) + 1, np.int64)
        firsts[1:] = self.sum_by_context(lambda rows: np.ones(rows.stop - rows.start))
        np.cumsum(firsts, out=firsts)

        def find(prefixes: Rows, tokens: NDArray[np.int64]) -> Rows:
            rows = np.empty_like(prefixes)
            find_continuations(keys, firsts, prefixes, tokens, vocab_size, rows)
            return rows

        return find


class NgramCounts:
    """The tables of order 1 to N."""

    def __init__(
        self,
        arrays: Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]],
        starts: Sequence[int] = (),
    ) -> None:
        """Take the keys and the counts of each order, from 1 on.

        ``starts[n - 1]`` is the row of the n-gram of order n that begins the text, for those who
        need it.
        """
        self.tables: list[Table] = []
        for keys, counts in arrays:
            self.append(keys, counts)
        self.starts = list(starts)

    def append(self, keys: NDArray[np.integer], counts: NDArray[np.integer]) -> None:
        """Add the table of the next order."""
        self.tables.append(Table(keys, counts, self.tables[-1] if self.tables else None))

    @property
    def max_order(self) -> int:
        """N, the highest order that was counted."""
        return len(self.tables)

    @property
    def vocab_size(self) -> int:
        """V, the number of tokens in the vocabulary."""
        return len(self.tables[0])

    def table(self, order: int) -> Table:
        """Return the table of one order, 1 to N."""
        return self.tables[order - 1]

    def rows_of(self, ids: Ids, order: int) -> list[Rows]:
        """Return, for each order up to ``order``, the row of the n-gram at every position of
        ``ids``, -1 if unseen.

        Entry n - 1 has shape ``(len(ids) - n + 1,)``.
        """
        rows = [np.asarray(ids, np.int64)]
        for n in range(2, order + 1):
            rows.append(self.table(n).find(rows[-1][: len(ids) - n + 1], rows[0][n - 1 :]))
        return rows

    def lookups(self, ids: Ids, order: int) -> Iterator[tuple[int, Rows, Rows]]:
        """Yield n, and for each n-gram of ``ids`` the row of its context and its own, -1 if unseen,
        from n = 2 on."""
        rows = self.rows_of(ids, order)
        for n in range(2, order + 1):
            yield n, rows[n - 2][: len(rows[n - 1])], rows[n - 1]
