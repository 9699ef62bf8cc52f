"""N-grams packed into one integer each, and what follows from them sorted and counted.

A key holds the tokens of an n-gram side by side, the first in the highest bits, so that
sorted keys are sorted n-grams and a key without its last token is the key of its prefix.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Ids
from seqlm.ngrams.counts.sorted_runs import (
    MemoryRun,
    Part,
    Run,
    are_first,
    blocks_of,
    run_lengths,
    with_equals_added,
    with_one_more,
)

_COUNTED_BITS = 20
"""Keys of so few bits are counted in a table that has a row for each, without sorting."""
_PACKED_AT_ONCE = 1 << 16
"""Places whose keys are made at once, so that all they need stays in the processor's cache."""


def bits_of(num_tokens: int) -> int:
    """Return the bits that tell so many tokens apart."""
    return max(int(num_tokens - 1).bit_length(), 1)


@dataclass(frozen=True)
class PackedCounts:
    """The n-grams of one order in a stream, and all tokens."""

    order: int
    bits: int
    """Of each token in a key."""
    run: Run
    unigrams: NDArray[np.integer]
    """How often each token occurs."""


def pack(ids: Ids, order: int, bits: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return the key of the n-gram at each place of ``ids`` where one begins."""
    wide = ids.astype(dtype)
    places = len(ids) - order + 1
    keys = wide[:places].copy()
    for offset in range(1, order):
        keys <<= bits
        keys |= wide[offset : offset + places]
    return keys


def last_key(ids: Ids, order: int, bits: int) -> int:
    """Return the key of the n-gram that a stream ends with."""
    return int(pack(np.asarray(ids[len(ids) - order :]), order, bits, np.dtype(np.int64))[0])


def count_packed(ids: Ids, *, num_places: int, order: int, bits: int) -> MemoryRun:
    """Count the n-grams of an order that begin at the first ``num_places`` places of ``ids``."""
    num_keys = max(min(num_places, len(ids) - order + 1), 0)
    dtype: np.dtype[Any] = np.dtype(np.uint32 if order * bits <= 32 else np.int64)
    blocks = (
        pack(ids[start : min(start + _PACKED_AT_ONCE, num_keys) + order - 1], order, bits, dtype)
        for start in range(0, num_keys, _PACKED_AT_ONCE)
    )
    if order * bits <= _COUNTED_BITS:
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


def shortened(run: Run, last: int, bits: int, rows_at_once: int) -> Iterator[Part]:
    """Yield the n-grams of the order below a run's, whose counts follow from those of the run.

    An n-gram occurs as often as all that continue it, and once more if the stream ends
    with it: ``last`` is the key of the one for which that is so.
    """
    parts = ((keys >> bits, counts) for keys, counts in blocks_of(run, rows_at_once))
    return with_equals_added(with_one_more(parts, last))


def over_table_below(
    run: Run, order: int, last_below: int, bits: int, vocab_size: int, rows_at_once: int
) -> Iterator[Part]:
    """Yield a run with the keys of a table: the row of the prefix in the table below, and the last token.

    Prefixes rise, and each n-gram of the table below is somebody's prefix, but for the one
    that the stream ends with, whose key is ``last_below``, where it occurs nowhere else:
    the rows of prefixes are counted off.
    """
    token = (1 << bits) - 1
    parts = blocks_of(run, rows_at_once)
    if order == 2:  # the table of single tokens has a row for each, whether it occurs or not
        yield from (((keys >> bits) * vocab_size + (keys & token), counts) for keys, counts in parts)
        return
    is_prefix = _holds_prefix(run, last_below, bits)
    row, prefix = -1, -1
    for keys, counts in parts:
        prefixes = keys >> bits
        rows: NDArray[np.int64] = np.cumsum(are_first(prefixes))
        rows += row if prefixes[0] != prefix else row - 1
        row, prefix = int(rows[-1]), int(prefixes[-1])
        if not is_prefix:
            rows += prefixes > last_below
        yield rows * vocab_size + (keys & token), counts


def _holds_prefix(run: Run, prefix: int, bits: int) -> bool:
    keys = run.mapped()[0]
    row = int(np.searchsorted(keys, prefix << bits))
    return row < len(keys) and int(keys[row]) >> bits == prefix
