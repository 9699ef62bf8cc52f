"""The most frequent n-grams of a text, in the order that a Counter gives them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Counts, Ids, Rows, Table
from seqlm.ngrams.counts.first_occurrences import BLOCK, NOWHERE, overlapping


def by_frequency(blocks: Iterable[Ids], counts: Counts, order: int, limit: int) -> Rows:
    """Return the ``limit`` most frequent rows of an order, ties by first appearance in the text that was counted.

    ``blocks`` are the text. Rows that never occur stay away.
    """
    found = counts.table(order).counts.astype(np.int64, copy=False)
    candidates = np.flatnonzero(found >= max(_largest(found, limit), 1))
    firsts = _places_of(blocks, counts.tokens_of(order, candidates), counts.vocab_size)
    return candidates[np.lexsort((firsts, -found[candidates]))][:limit]


def _largest(counts: NDArray[np.int64], limit: int) -> int:
    """Return the smallest of the ``limit`` largest counts, 0 where there are fewer."""
    best = np.empty(0, np.int64)
    for start in range(0, len(counts), BLOCK):
        pool = np.concatenate([best, counts[start : start + BLOCK]])
        best = np.partition(pool, len(pool) - limit)[len(pool) - limit :] if len(pool) > limit else pool
    return int(best.min()) if len(best) == limit else 0


def _places_of(blocks: Iterable[Ids], grams: NDArray[np.int64], vocab_size: int) -> NDArray[np.int64]:
    """Return where each n-gram, one a row of ``grams``, first occurs in a text; all must occur."""
    order = grams.shape[1]
    tables, rows = _tables_of(grams, vocab_size)
    begins = np.zeros(vocab_size, bool)
    begins[grams[:, 0]] = True
    firsts, start = np.full(len(tables[-1]), NOWHERE), 0
    for block in overlapping(blocks, order - 1):
        num_places = max(len(block) - order + 1, 0)
        places = np.flatnonzero(begins[block[:num_places]])
        found = block[places].astype(np.int64)
        for n in range(2, order + 1):
            found = tables[n - 1].find(found * vocab_size + block[places + n - 1])
            places, found = places[found >= 0], found[found >= 0]
        is_new = firsts[found] == NOWHERE
        # The last of several assignments stands: going backwards, that is the first place.
        firsts[found[is_new][::-1]] = places[is_new][::-1] + start
        start += num_places
        if firsts[rows].max(initial=0) < NOWHERE:
            break
    return firsts[rows]


def _tables_of(grams: NDArray[np.int64], vocab_size: int) -> tuple[list[Table], Rows]:
    """Return tables that hold these n-grams and their beginnings alone, and the row of each in the last table."""
    tables = [Table(np.arange(vocab_size), np.ones(vocab_size, np.int64))]
    rows = grams[:, 0]
    for column in grams.T[1:]:
        keys, rows = np.unique(rows * vocab_size + column, return_inverse=True)
        tables.append(Table(keys, np.ones(len(keys), np.int64)))
    return tables, rows
