"""Counting n-grams: with NumPy if they fit into memory, with an engine of :mod:`~seqlm.ngrams.counts.engines` if not.

An n-gram is packed into one integer, ``(t1 * V + t2) * V + t3``. In memory, the longest n-grams that fit into 63 bits
are sorted and run-length counted, and the shorter ones follow from them; an engine counts each order. Longer n-grams
are counted as pairs of their prefix's row in the table below and their last token.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.memory import machine_memory
from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, IDS_AT_ONCE, Ids, NgramCounts
from seqlm.ngrams.counts.engines import DuckDB, Part, Spark

_LARGEST_KEY = 2**63 - 1


def count_ngrams(ids: Ids, vocab_size: int, max_order: int, engine: DuckDB | None = None) -> NgramCounts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens, in memory or with an engine.

    Raises DataError if the stream has fewer than ``max_order`` tokens.
    """
    if len(ids) < max_order:
        raise DataError(f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower ngrams.max_order")
    packable = next(order for order in range(1, max_order + 1) if order == max_order or _is_too_wide(vocab_size, order))
    if engine is None:
        packed = _packed_in_memory(ids, vocab_size, packable)
    else:
        packed = [engine.count(_columns(ids, order), vocab_size, order) for order in range(2, packable + 1)]
    for (keys, _), (below, _) in zip(packed[:0:-1], packed[-2::-1], strict=True):
        _replace_prefixes_by_rows(keys, below, vocab_size)
    counts = NgramCounts([_unigrams(ids, vocab_size), *packed])
    rows = ids  # of the n-gram at each position; those of an order are found while the one below is counted
    if engine is None and 1 < packable < max_order:
        rows = np.unique(_keys(_columns(ids, packable), vocab_size), return_inverse=True)[1]
    for order in range(packable + 1, max_order + 1):
        if engine is None:
            pairs = _keys([rows[:-1], ids[order - 1 :]], vocab_size)
            keys, rows, sizes = np.unique(pairs, return_inverse=True, return_counts=True)
            counts.append(keys, sizes)
        else:
            blocks = (counts.rows_of(block, order - 1)[-1] for block in _overlapping(ids, order - 1))
            counts.append(*engine.count([engine.store(blocks, order)[:-1], ids[order - 1 :]], vocab_size, order))
    counts.starts = [int(rows[0]) for rows in counts.rows_of(ids[:max_order], max_order)]
    return counts


def choose_engine(
    ids: Ids, vocab_size: int, max_order: int, memory: int | None, folder: Path, spark: str | None = None
) -> DuckDB | None:
    """Return what counts a stream of tokens; None if it is counted in memory.

    ``memory``: bytes that counting may take; None: half of what this machine has. ``folder``: for the counts of an
    engine, and what it spills; it must exist as long as they are used. ``spark``: the address of a Spark cluster, which
    then counts in any case.
    """
    if spark is not None:
        return Spark(memory or 1 << 30, folder, spark)
    memory = memory or int(machine_memory() * _SHARE_OF_MACHINE)
    return None if bytes_needed(ids, vocab_size, max_order) <= memory else DuckDB(memory, folder)


def bytes_needed(ids: Ids, vocab_size: int, max_order: int) -> int:
    """Return how much memory counting takes, estimated from the first million tokens of a stream.

    The share of distinct n-grams falls with the length of a text, so the estimate is rather too large.
    """
    if len(ids) <= IDS_AT_ONCE:
        return len(ids) * (_BYTES_OF_KEY + _BYTES_OF_ENTRY * (max_order - 1))
    sample = count_ngrams(ids[:IDS_AT_ONCE], vocab_size, max_order)
    entries = sum(len(table) for table in sample.tables[1:]) / IDS_AT_ONCE
    return int(len(ids) * (_BYTES_OF_KEY + _BYTES_OF_ENTRY * entries))


_SHARE_OF_MACHINE = 0.5
"""Share of this machine's memory that is used if the setting is ``auto``."""
_BYTES_OF_KEY = 17
"""The packed key of each position, the distinct ones among them, and whether one differs from the one before."""
_BYTES_OF_ENTRY = 32
"""A distinct n-gram: its key and its count, and what counting the order below adds."""


def _is_too_wide(vocab_size: int, order: int) -> bool:
    """Return whether the n-grams of the next order fit into no key."""
    return int(vocab_size ** (order + 1)) > _LARGEST_KEY


def _unigrams(ids: Ids, vocab_size: int) -> Part:
    counts = np.zeros(vocab_size, np.int64)
    for start in range(0, len(ids), IDS_AT_ONCE):
        counts += np.bincount(ids[start : start + IDS_AT_ONCE], minlength=vocab_size)
    return np.arange(vocab_size), counts


def _columns(ids: Ids, order: int) -> list[Ids]:
    """Return the first, second, ... token of the n-grams of a stream."""
    return [ids[place : len(ids) - order + 1 + place] for place in range(order)]


def _keys(columns: Sequence[Ids], base: int, dtype: type[np.integer] = np.int64) -> NDArray[np.integer]:
    keys = columns[0].astype(dtype)
    for column in columns[1:]:
        keys *= base
        np.add(keys, column, out=keys, casting="unsafe")
    return keys


def _run_lengths(keys: NDArray[np.integer]) -> Part:
    """Count keys, which are sorted in place."""
    keys.sort()
    firsts = np.flatnonzero(_are_first(keys))
    return keys[firsts].astype(np.int64, copy=False), np.diff(firsts, append=len(keys))


def _are_first(keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for each of the sorted keys whether it differs from the one before."""
    found = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=found[1:])
    return found


def _packed_in_memory(ids: Ids, vocab_size: int, highest: int) -> list[Part]:
    """Return the packed keys and the counts of order 2 to the highest one.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends with it.
    """
    if highest == 1:
        return []
    dtype = np.uint32 if vocab_size**highest <= 2**32 else np.int64  # the smaller ones are sorted in half the time
    keys, counts = _run_lengths(_keys(_columns(ids, highest), vocab_size, dtype))
    packed = [(keys, counts)]
    for order in range(highest - 1, 1, -1):
        prefixes = keys // vocab_size
        firsts = np.flatnonzero(_are_first(prefixes))
        keys, counts = prefixes[firsts], np.add.reduceat(counts, firsts)
        last = int(_keys(_columns(ids[len(ids) - order :], order), vocab_size)[0])
        place = int(np.searchsorted(keys, last))
        if place == len(keys) or keys[place] != last:
            keys, counts = np.insert(keys, place, last), np.insert(counts, place, 0)
        counts[place] += 1
        packed.append((keys, counts))
    return packed[::-1]


def _replace_prefixes_by_rows(keys: NDArray[np.integer], below: NDArray[np.integer], vocab_size: int) -> None:
    """Make packed keys those of a table, in place: the prefix becomes its row among the packed keys below."""
    for start in range(0, len(keys), BLOCK_ROWS):
        block = keys[start : start + BLOCK_ROWS]
        prefixes = block // vocab_size
        tokens = block - prefixes * vocab_size
        firsts = np.flatnonzero(_are_first(prefixes))
        rows = np.searchsorted(below, prefixes[firsts])
        block[:] = np.repeat(rows, np.diff(firsts, append=len(block))) * vocab_size + tokens


def _overlapping(ids: Ids, order: int) -> Iterator[Ids]:
    """Yield a stream in blocks that together have each of its n-grams once."""
    for start in range(0, len(ids) - order + 1, IDS_AT_ONCE):
        yield ids[start : start + IDS_AT_ONCE + order - 1]
