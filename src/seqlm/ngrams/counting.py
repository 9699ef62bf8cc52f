"""Counting n-grams: all at once in memory, or in chunks where memory is short.

The longest n-grams are counted, and the shorter ones follow from them: an n-gram occurs as
often as all that continue it, and once more if the text ends with it. A chunk's n-grams are
packed into one integer each, sorted, and run-length counted; the chunks' sorted runs are
merged. A text that fits into memory is one chunk. N-grams that are too wide for 64 bits are
counted by keys over the table of the order below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.ngrams.count_tables import Counts, Ids, Table
from seqlm.ngrams.parallel import map_chunks, num_local_threads
from seqlm.ngrams.sorted_runs import (
    FileRun,
    MemoryRun,
    Part,
    Run,
    are_first,
    blocks_of,
    merge,
    run_lengths,
    with_equals_added,
    with_one_more,
    write_run,
)

_KEY_BITS = 63
"""Bits of a key that holds packed tokens; the 64th is the sign."""
_COUNTED_BITS = 20
"""Keys of so few bits are counted in a table that has a row for each, without sorting."""
_BYTES_PER_TOKEN = 48
"""Memory that counting one order takes at most for each token of a chunk."""
_BYTES_PER_ENTRY = 16
"""A key and its count."""
_MERGE_COPIES = 5
"""Copies of its buffers that a merge holds at once, at most."""
_SHARE_OF_MEMORY = 0.5
"""Share of the memory setting that arrays may take; the rest is for Python and its packages."""
_MIN_ROWS = 1 << 10
_PACKED_AT_ONCE = 1 << 16
"""Places whose keys are made at once, so that all they need stays in the processor's cache."""


@dataclass(frozen=True)
class Chunking:
    """How a text is counted that may be larger than memory."""

    memory: int
    """Bytes that the process may take; a text that needs more is counted in chunks."""
    folder: Path
    """Where the runs and then the tables lie; it must be there as long as the counts are used."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers count the chunks; None: threads of this process."""


def count_ngrams(ids: Ids, vocab_size: int, max_order: int, chunking: Chunking | None = None) -> Counts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens.

    Without ``chunking`` everything is done in memory. Raises DataError where the stream
    has fewer than ``max_order`` tokens.
    """
    if len(ids) < max_order:
        raise DataError(f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower ngrams.max_order")
    counter = _Counter(ids, vocab_size, max_order, chunking)
    tables = counter.count()
    counts = Counts(vocab_size, tables, [])
    starts = [int(rows[0]) for rows in counts.rows_of(np.asarray(ids[:max_order]), max_order)]
    return Counts(vocab_size, tables, starts)


class _Counter:
    def __init__(self, ids: Ids, vocab_size: int, max_order: int, chunking: Chunking | None) -> None:
        self._ids = ids
        self._vocab_size = vocab_size
        self._bits = max(int(vocab_size - 1).bit_length(), 1)
        self._max_order = max_order
        self._num_packed = min(max_order, _KEY_BITS // self._bits)
        """Highest order whose n-grams fit into one packed key."""
        fits = chunking is None or (
            chunking.scheduler is None
            and len(ids) * (_BYTES_PER_TOKEN + _BYTES_PER_ENTRY * max(max_order - 2, 0))
            <= chunking.memory * _SHARE_OF_MEMORY
        )
        self._chunking = None if fits else chunking
        self._chunk = len(ids)
        if self._chunking:
            at_once = self._chunking.memory * _SHARE_OF_MEMORY / _BYTES_PER_TOKEN / num_local_threads()
            self._chunk = max(int(at_once), _MIN_ROWS)

    def count(self) -> list[Table]:
        """Return the tables of order 1 to N."""
        tables = [self._unigrams(), *reversed(list(self._packed_tables()))]
        for order in range(len(tables) + 1, self._max_order + 1):
            runs = self._ranked_runs(order, tables)
            tables.append(self._table(order, self._merged_parts(runs)))
        return tables

    def _packed_tables(self) -> Iterator[Table]:
        """Yield the tables of the orders that can be packed, the highest first, without that of order 1."""
        order = self._num_packed
        if order < 2:
            return
        run = self._merged(self._packed_runs(order), f"packed{order}")
        while True:
            shorter = self._shorter(run, order - 1) if order > 2 else None
            yield self._table(order, self._over_table_below(run, order))
            self._remove(run)
            if shorter is None:
                return
            run, order = shorter, order - 1

    def _unigrams(self) -> Table:
        counts = np.zeros(self._vocab_size, np.int64)
        for start in range(0, len(self._ids), self._chunk):
            counts += np.bincount(self._ids[start : start + self._chunk], minlength=self._vocab_size)
        return Table(np.arange(self._vocab_size), counts)

    def _chunks(self, order: int) -> Iterator[Ids]:
        """Yield overlapping chunks: each n-gram of the text begins in one of them."""
        for start in range(0, len(self._ids), self._chunk):
            yield self._ids[start : start + self._chunk + order - 1]

    def _packed_runs(self, order: int) -> list[Run]:
        count = partial(count_packed, num_places=self._chunk, order=order, bits=self._bits)
        results = (
            map(count, self._chunks(order))
            if self._chunking is None
            else map_chunks(count, self._chunks(order), self._chunking.scheduler)
        )
        return [
            self._stored(f"chunk{order}-{index}", iter([(run.keys, run.counts)])) for index, run in enumerate(results)
        ]

    def _ranked_runs(self, order: int, tables: Sequence[Table]) -> list[Run]:
        """Return the runs of an order whose tokens are too wide to be packed: keys over the table below."""
        counts, runs = Counts(self._vocab_size, list(tables), []), []
        for index, chunk in enumerate(self._chunks(order)):
            below = counts.rows_of(chunk, order - 1)[-1][:-1]
            run = run_lengths(below * self._vocab_size + chunk[order - 1 :])
            runs.append(self._stored(f"chunk{order}-{index}", iter([(run.keys, run.counts)])))
        return runs

    def _shorter(self, run: Run, order: int) -> Run:
        """Return the packed run of an order from that of the order above."""
        parts = ((keys >> self._bits, counts) for keys, counts in blocks_of(run, self._rows_at_once(1)))
        return self._stored(f"packed{order}", with_equals_added(with_one_more(parts, self._last(order))))

    def _last(self, order: int) -> int:
        """Return the packed n-gram that the text ends with."""
        return int(_packed(self._ids[len(self._ids) - order :], order, self._bits, np.dtype(np.int64))[0])

    def _over_table_below(self, run: Run, order: int) -> Iterator[Part]:
        """Yield a packed run with keys over the table below.

        Prefixes rise, and each n-gram of the table below is somebody's prefix, but for the
        text's last one where it occurs nowhere else: the rows of prefixes are counted off.
        """
        last = self._last(order - 1)
        found = int(np.searchsorted(run.mapped()[0], last << self._bits))
        is_prefix = found < len(run) and run.mapped()[0][found] >> self._bits == last
        row, prefix = -1, -1
        for keys, counts in blocks_of(run, self._rows_at_once(1)):
            prefixes = keys >> self._bits
            if order == 2:
                rows = prefixes  # the table of single tokens has a row for each, whether it occurs or not
            else:
                rows = np.cumsum(are_first(prefixes))
                rows += row + (1 if prefixes[0] != prefix else 0) - 1
                row, prefix = int(rows[-1]), int(prefixes[-1])
                if not is_prefix:
                    rows += prefixes > last
            yield rows * self._vocab_size + (keys & ((1 << self._bits) - 1)), counts

    def _merged(self, runs: list[Run], name: str) -> Run:
        if len(runs) == 1:
            return runs[0]
        return self._stored(name, self._merged_parts(runs))

    def _merged_parts(self, runs: list[Run]) -> Iterator[Part]:
        yield from merge(runs, self._rows_at_once(len(runs)))
        for run in runs:
            self._remove(run)

    def _rows_at_once(self, num_runs: int) -> int:
        if self._chunking is None:
            return max(len(self._ids), 1)
        memory = self._chunking.memory * _SHARE_OF_MEMORY
        return max(int(memory / (num_runs * _BYTES_PER_ENTRY * _MERGE_COPIES)), _MIN_ROWS)

    def _stored(self, name: str, parts: Iterator[Part]) -> Run:
        """Return parts as a run: in a file where chunks are counted, else in memory."""
        if self._chunking is not None:
            return write_run(self._chunking.folder / name, parts)
        keys, counts = zip(*parts, strict=True)
        return MemoryRun(np.concatenate(keys), np.concatenate(counts))

    def _table(self, order: int, parts: Iterator[Part]) -> Table:
        return Table(*self._stored(f"order{order}", parts).mapped())

    def _remove(self, run: Run | None) -> None:
        if isinstance(run, FileRun):
            run.remove()


def count_packed(ids: NDArray[np.integer], *, num_places: int, order: int, bits: int) -> MemoryRun:
    """Count the n-grams of an order that begin at the first ``num_places`` places of ``ids``.

    Keys hold the tokens packed into ``bits`` bits each.
    """
    num_keys = max(min(num_places, len(ids) - order + 1), 0)
    dtype: np.dtype[Any] = np.dtype(np.uint32 if order * bits <= 32 else np.int64)
    blocks = (
        _packed(ids[start : min(start + _PACKED_AT_ONCE, num_keys) + order - 1], order, bits, dtype)
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


def _packed(ids: Ids, order: int, bits: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return the packed n-gram at each place of ``ids`` where one begins."""
    wide = ids.astype(dtype)
    places = len(ids) - order + 1
    keys = wide[:places].copy()
    for offset in range(1, order):
        keys <<= bits
        keys |= wide[offset : offset + places]
    return keys
