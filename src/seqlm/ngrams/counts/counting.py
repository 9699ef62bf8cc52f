"""Counting n-grams, in memory or with an engine.

An n-gram is packed into one integer, ``(t1 * V + t2) * V + t3``. In memory, the longest n-grams
that fit into 63 bits are sorted and run-length counted, and the shorter ones follow from them; an
engine counts each order. Longer n-grams are counted as pairs of their prefix's row in the table
below and their last token.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, IDS_AT_ONCE, Ids, NgramCounts

Part = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Ascending keys, and how often each occurs."""


class Engine(Protocol):
    """What counts more than fits into memory."""

    def count(self, blocks: Iterator[Ids], order: int) -> Part:
        """Return the counts of keys that come in blocks, for n-grams of an order. The arrays that
        are returned may be changed."""


_LARGEST_KEY = 2**63 - 1


def count_ngrams(
    ids: Ids, vocab_size: int, max_order: int, engine: Engine | None = None
) -> NgramCounts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens, in memory or with an
    engine.

    Raises DataError if the stream has fewer than ``max_order`` tokens.
    """
    if len(ids) < max_order:
        raise DataError(
            f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower "
            "ngrams.max_order"
        )
    packable = max([1, *(n for n in range(2, max_order + 1) if vocab_size**n <= _LARGEST_KEY)])
    if engine is None:
        packed = _packed_in_memory(ids, vocab_size, packable)
    else:
        packed = [
            engine.count(_blocks_of_keys(ids, vocab_size, order), order)
            for order in range(2, packable + 1)
        ]
    for (below, _), (keys, _) in reversed(list(pairwise(packed))):
        _replace_prefixes_by_rows(keys, below, vocab_size)
    counts = NgramCounts([_unigrams(ids, vocab_size), *packed])
    # Of the n-gram at each position; those of an order are found while the one below is counted.
    rows = ids
    if engine is None and 1 < packable < max_order:
        rows = np.unique(_keys(_columns(ids, packable), vocab_size), return_inverse=True)[1]
    for order in range(packable + 1, max_order + 1):
        if engine is None:
            pairs = _keys([rows[:-1], ids[order - 1 :]], vocab_size)
            keys, rows, sizes = np.unique(pairs, return_inverse=True, return_counts=True)
            counts.append(keys, sizes)
        else:
            counts.append(*engine.count(_blocks_of_keys(ids, vocab_size, order, counts), order))
    counts.starts = [int(rows[0]) for rows in counts.rows_of(ids[:max_order], max_order)]
    return counts


def _unigrams(ids: Ids, vocab_size: int) -> Part:
    counted = (np.bincount(block, minlength=vocab_size) for block in _overlapping(ids, 1))
    return np.arange(vocab_size), sum(counted, np.zeros(vocab_size, np.int64))


def _columns(ids: Ids, order: int) -> list[Ids]:
    """Return the first, second, ... token of the n-grams of a stream."""
    return [ids[offset : len(ids) - order + 1 + offset] for offset in range(order)]


def _keys(
    columns: Sequence[Ids], base: int, dtype: type[np.integer] = np.int64
) -> NDArray[np.integer]:
    keys = columns[0].astype(dtype)
    for column in columns[1:]:
        keys *= base
        np.add(keys, column, out=keys, casting="unsafe")
    return keys


def _blocks_of_keys(
    ids: Ids, vocab_size: int, order: int, counts: NgramCounts | None = None
) -> Iterator[NDArray[np.integer]]:
    """Yield the keys of all n-grams of an order: packed or, given the tables below, as pairs."""
    for block in _overlapping(ids, order):
        columns = _columns(block, order)
        if counts is not None:
            columns = [counts.rows_of(block[:-1], order - 1)[-1], columns[-1]]
        yield _keys(columns, vocab_size)


def _borders(keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where the runs of equal keys begin among sorted keys, and where the last one ends."""
    is_border = np.ones(len(keys) + 1, bool)
    np.not_equal(keys[1:], keys[:-1], out=is_border[1:-1])
    return np.flatnonzero(is_border)


def _packed_in_memory(ids: Ids, vocab_size: int, highest: int) -> list[Part]:
    """Return the packed keys and the counts of order 2 to the highest one.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends
    with it.
    """
    if highest == 1:
        return []
    # Smaller integers are sorted in half the time.
    dtype = np.uint32 if vocab_size**highest <= 2**32 else np.int64
    keys = _keys(_columns(ids, highest), vocab_size, dtype)
    keys = _sorted(keys, vocab_size**highest)
    borders = _borders(keys)
    keys, counts = keys[borders[:-1]].astype(np.int64, copy=False), np.diff(borders)
    packed = [(keys, counts)]
    for order in range(highest - 1, 1, -1):
        prefixes = keys // vocab_size
        firsts = _borders(prefixes)[:-1]
        keys, counts = prefixes[firsts], np.add.reduceat(counts, firsts)
        last = int(_keys(_columns(ids[len(ids) - order :], order), vocab_size)[0])
        row = int(np.searchsorted(keys, last))
        if row == len(keys) or keys[row] != last:
            keys, counts = np.insert(keys, row, last), np.insert(counts, row, 0)
        counts[row] += 1
        packed.append((keys, counts))
    return packed[::-1]


def _sorted(keys: NDArray[np.integer], limit: int) -> NDArray[np.integer]:
    """Return keys below a limit in ascending order. Their array changes."""
    if len(keys) > IDS_AT_ONCE:  # for fewer it is not worth loading
        from seqlm.ngrams.counts.kernels import radix_sorted

        keys = radix_sorted(keys, np.empty_like(keys), (limit - 1).bit_length())
    else:
        keys.sort()
    return keys


def _replace_prefixes_by_rows(
    keys: NDArray[np.integer], below: NDArray[np.integer], vocab_size: int
) -> None:
    """Make packed keys those of a table, in row: the prefix becomes its row among the packed keys
    below."""
    for start in range(0, len(keys), BLOCK_ROWS):
        block = keys[start : start + BLOCK_ROWS]
        prefixes = block // vocab_size
        tokens = block - prefixes * vocab_size
        borders = _borders(prefixes)
        rows = np.searchsorted(below, prefixes[borders[:-1]])
        block[:] = np.repeat(rows, np.diff(borders)) * vocab_size + tokens


def _overlapping(ids: Ids, order: int) -> Iterator[Ids]:
    """Yield a stream in blocks that together have each of its n-grams once."""
    for start in range(0, len(ids) - order + 1, IDS_AT_ONCE):
        yield ids[start : start + IDS_AT_ONCE + order - 1]
