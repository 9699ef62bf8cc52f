"""Counting n-grams: all at once in memory, or in chunks where memory is short.

A chunk's n-grams are packed into one integer each, sorted, and run-length counted; the
chunks' sorted runs are merged. A text that fits into memory is one chunk. N-grams that
are too wide for 64 bits are counted by keys over the table of the order below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.ngrams.count_tables import Counts, Ids, Table
from seqlm.ngrams.parallel import map_chunks, num_local_threads
from seqlm.ngrams.sorted_runs import FileRun, Keys, MemoryRun, Part, Run, merge, run_lengths, write_run

_KEY_BITS = 63
"""Bits of a key that holds packed tokens; the 64th is the sign."""
_BYTES_PER_TOKEN = 48
"""Memory that counting one order takes at most for each token of a chunk."""
_BYTES_PER_ENTRY = 16
"""A key and its count."""
_MERGE_COPIES = 5
"""Copies of its buffers that a merge holds at once, at most."""
_SHARE_OF_MEMORY = 0.5
"""Share of the memory setting that arrays may take; the rest is for Python and its packages."""
_MIN_ROWS = 1 << 10


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
        self._orders = range(2, max_order + 1)
        self._num_packed = min(max_order, _KEY_BITS // self._bits)
        """Highest order whose n-grams fit into one packed key."""
        per_token = _BYTES_PER_TOKEN + _BYTES_PER_ENTRY * max(max_order - 2, 0)
        fits = chunking is None or (
            chunking.scheduler is None and len(ids) * per_token <= chunking.memory * _SHARE_OF_MEMORY
        )
        self._chunking = None if fits else chunking
        self._chunk = len(ids)
        if self._chunking:
            at_once = self._chunking.memory * _SHARE_OF_MEMORY / per_token / num_local_threads()
            self._chunk = max(int(at_once), _MIN_ROWS)

    def count(self) -> list[Table]:
        """Return the tables of order 1 to N."""
        tables = [self._unigrams()]
        packed = self._packed_runs()
        below: Run | None = None
        for order in self._orders:
            if order <= self._num_packed:
                merged = self._merged(packed[order], f"packed{order}")
                tables.append(self._table(order, self._unpacked(merged, below)))
                self._remove(below)
                below = merged
            else:
                tables.append(self._table(order, self._merged_parts(self._ranked_runs(order, tables))))
        self._remove(below)
        return tables

    def _unigrams(self) -> Table:
        counts = np.zeros(self._vocab_size, np.int64)
        for start in range(0, len(self._ids), self._chunk):
            counts += np.bincount(self._ids[start : start + self._chunk], minlength=self._vocab_size)
        return Table(np.arange(self._vocab_size), counts)

    def _chunks(self) -> Iterator[Ids]:
        """Yield overlapping chunks: each n-gram of the text begins in one of them."""
        overlap = self._orders.stop - 2
        for start in range(0, len(self._ids), self._chunk):
            yield self._ids[start : start + self._chunk + overlap]

    def _packed_runs(self) -> dict[int, list[Run]]:
        """Return for each order that can be packed the runs of all chunks."""
        orders = [order for order in self._orders if order <= self._num_packed]
        runs: dict[int, list[Run]] = {order: [] for order in orders}
        if not orders:
            return runs
        count = partial(count_packed, num_places=self._chunk, orders=orders, bits=self._bits)
        results = (
            map(count, self._chunks())
            if self._chunking is None
            else map_chunks(count, self._chunks(), self._chunking.scheduler)
        )
        for index, result in enumerate(results):
            for order, run in zip(orders, result, strict=True):
                runs[order].append(self._stored(f"chunk{order}-{index}", [(run.keys, run.counts)]))
        return runs

    def _ranked_runs(self, order: int, tables: Sequence[Table]) -> list[Run]:
        """Return the runs of an order whose tokens are too wide to be packed: keys over the table below."""
        counts, runs = Counts(self._vocab_size, list(tables), []), []
        for index, chunk in enumerate(self._chunks()):
            grams = chunk[: self._chunk + order - 1]
            below = counts.rows_of(grams, order - 1)[-1][:-1]
            run = run_lengths(below * self._vocab_size + grams[order - 1 :])
            runs.append(self._stored(f"chunk{order}-{index}", [(run.keys, run.counts)]))
        return runs

    def _unpacked(self, packed: Run, below: Run | None) -> Iterator[Part]:
        """Yield a packed run with keys over the table below.

        Prefixes rise, and each of the n-grams below but the text's last one is somebody's
        prefix: a block of n-grams needs no more than the block below of the same length.
        """
        rows_at_once = self._rows_at_once(1)
        cursor = 0
        for start in range(0, len(packed), rows_at_once):
            keys, counts = packed.read(start, start + rows_at_once)
            rows = keys >> self._bits
            if below is not None:
                rows = np.searchsorted(below.read(cursor, cursor + len(keys) + 2)[0], rows) + cursor
                cursor = int(rows[-1])
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

    def _stored(self, name: str, parts: Iterator[Part] | list[Part]) -> Run:
        """Return parts as a run: in a file where chunks are counted, else in memory."""
        if self._chunking is not None:
            return write_run(self._chunking.folder / name, parts)
        (part,) = parts
        return MemoryRun(*part)

    def _table(self, order: int, parts: Iterator[Part]) -> Table:
        run = self._stored(f"order{order}", parts)
        return Table(*(run.mapped() if isinstance(run, FileRun) else run.read(0, len(run))))

    def _remove(self, run: Run | None) -> None:
        if isinstance(run, FileRun):
            run.remove()


def count_packed(ids: NDArray[np.integer], *, num_places: int, orders: Sequence[int], bits: int) -> list[MemoryRun]:
    """Count the n-grams of some orders that begin at the first ``num_places`` places of ``ids``.

    Keys hold the tokens packed into ``bits`` bits each.
    """
    wide = np.asarray(ids, np.int64)
    return [run_lengths(_packed(wide, order, num_places, bits)) for order in orders]


def _packed(ids: Keys, order: int, num_places: int, bits: int) -> Keys:
    places = max(min(num_places, len(ids) - order + 1), 0)
    keys = ids[:places].copy()
    for offset in range(1, order):
        keys <<= bits
        keys |= ids[offset : offset + places]
    return keys
