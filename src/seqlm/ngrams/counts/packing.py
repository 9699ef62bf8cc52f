"""N-grams packed into one integer each, and what follows from their sorted counts.

The key of an n-gram holds its tokens side by side, the first in the highest bits. So sorted keys are sorted n-grams,
and a key without its last token is the key of the prefix.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Ids, IdStream
from seqlm.ngrams.counts.sorted_runs import MemoryRun, Part, Run, add_equal_keys, are_first, insert_key, run_lengths

_KEY_BITS = 63
"""Bits of a key; the 64th is the sign."""
_HISTOGRAM_BITS = 20
"""Keys of at most this many bits are counted in an array with an entry for each possible key, without sorting."""
_PACKED_AT_ONCE = 1 << 16
"""Keys that are made at once, so that all this takes stays in the processor's cache."""
_ROWS_AT_ONCE = 1 << 20
"""Rows of a run that are worked on at once."""


def bits_per_token(vocab_size: int) -> int:
    """Return how many bits tell the tokens of a vocabulary apart."""
    return max((vocab_size - 1).bit_length(), 1)


def max_packed_order(vocab_size: int) -> int:
    """Return the highest order whose n-grams fit into a key."""
    return _KEY_BITS // bits_per_token(vocab_size)


def count_packed(ids: Ids, *, num_starts: int, order: int, bits: int) -> MemoryRun:
    """Count the n-grams of an order that begin at the first ``num_starts`` positions of ``ids``."""
    num_keys = max(min(num_starts, len(ids) - order + 1), 0)
    dtype: np.dtype[Any] = np.dtype(np.uint32 if order * bits <= 32 else np.int64)
    blocks = (
        _pack(ids[start : min(start + _PACKED_AT_ONCE, num_keys) + order - 1], order, bits, dtype)
        for start in range(0, num_keys, _PACKED_AT_ONCE)
    )
    if order * bits <= _HISTOGRAM_BITS:
        totals = np.zeros(1 << (order * bits), np.int64)
        for block in blocks:
            totals += np.bincount(block, minlength=len(totals))
        keys = np.flatnonzero(totals)
        return MemoryRun(keys, totals[keys])
    packed, end = np.empty(num_keys, dtype), 0
    for block in blocks:
        packed[end : end + len(block)] = block
        end += len(block)
    return run_lengths(packed)


def _pack(ids: Ids, order: int, bits: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return the key of the n-gram at each position of ``ids`` where one begins."""
    wide = ids.astype(dtype)
    num_keys = len(ids) - order + 1
    keys = wide[:num_keys].copy()
    for offset in range(1, order):
        keys <<= bits
        keys |= wide[offset : offset + num_keys]
    return keys


def prefix_counts(run: Run, ids: IdStream, order: int, bits: int) -> Iterator[Part]:
    """Yield the counts of order n - 1 in the stream ``ids``, which follow from the run of order n.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends with it.
    """
    last = _pack(np.asarray(ids[len(ids) - order + 1 :]), order - 1, bits, np.dtype(np.int64))
    prefixes = ((keys >> bits, counts) for keys, counts in _parts_of(run))
    return add_equal_keys(insert_key(prefixes, int(last[0])))


def over_table_below(run: Run, below: Run | None, bits: int, vocab_size: int) -> Iterator[Part]:
    """Yield a run with the keys of a table: the row of the prefix in the table below, and the last token.

    ``below`` is the run of the order below; None stands for order 1, whose table has a row for every token. In other
    tables each row is the prefix of some n-gram of ``run``, except perhaps the one that the stream ends with.
    """
    row, token_mask = 0, (1 << bits) - 1
    for keys, counts in _parts_of(run):
        rows = keys >> bits
        if below is not None:
            is_new = are_first(rows)
            prefixes = rows[is_new]
            candidates, _ = below.read(row, row + len(prefixes) + 2)
            found = row + np.searchsorted(candidates, prefixes)
            row, rows = int(found[-1]), found[np.cumsum(is_new) - 1]
        yield rows * vocab_size + (keys & token_mask), counts


def _parts_of(run: Run) -> Iterator[Part]:
    for start in range(0, len(run), _ROWS_AT_ONCE):
        yield run.read(start, start + _ROWS_AT_ONCE)
