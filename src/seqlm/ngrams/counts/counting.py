"""Counting n-grams: all at once in memory, or in chunks where memory is short.

The longest n-grams are counted, and the shorter ones follow from them. A chunk's n-grams
are packed into one integer each, sorted, and run-length counted; the chunks' sorted runs
are merged. A text that fits into memory is one chunk. N-grams that are too wide for 64 bits
are counted by keys over the table of the order below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from seqlm.core.errors import DataError
from seqlm.ngrams.counts.count_tables import Counts, Ids, Table
from seqlm.ngrams.counts.packing import PackedCounts, bits_of, count_packed, last_key, over_table_below, shortened
from seqlm.ngrams.counts.parallel import map_chunks, num_local_threads
from seqlm.ngrams.counts.sorted_runs import FileRun, MemoryRun, Part, Run, merge, run_lengths, write_run

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
_ROWS_AT_ONCE = 1 << 20
"""Rows of one run that are worked on at once."""


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
    return NgramCounter(ids, vocab_size, max_order, chunking).count()


class NgramCounter:
    """Counts one stream of tokens as :func:`count_ngrams` does, and can go on from what was counted before."""

    def __init__(
        self,
        ids: Ids,
        vocab_size: int,
        max_order: int,
        chunking: Chunking | None = None,
        *,
        num_tokens: int | None = None,
        keep: int | None = None,
        before: PackedCounts | None = None,
    ) -> None:
        """Prepare to count ``ids``.

        ``keep`` is an order that stays packed for another counter: ``kept``. ``num_tokens``
        makes keys as wide as that one needs them. ``before`` is what stands before ``ids`` in the
        stream, of order ``max_order``; ``ids`` begin with its last ``max_order - 1`` tokens.
        """
        if len(ids) < max_order:
            raise DataError(f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower ngrams.max_order")
        self._ids = ids
        self._vocab_size = vocab_size
        self._max_order = max_order
        self._keep = keep
        self._before = before
        self.kept: PackedCounts | None = None
        """The n-grams of the order to keep, where they could be packed. Whoever goes on from them removes them."""
        self._bits = bits_of(num_tokens or vocab_size)
        self._num_packed = min(max_order, _KEY_BITS // self._bits)
        """Highest order whose n-grams fit into one packed key."""
        per_token = _BYTES_PER_TOKEN + _BYTES_PER_ENTRY * max(max_order - 2, 0)
        fits = chunking is None or (
            chunking.scheduler is None and len(ids) * per_token <= chunking.memory * _SHARE_OF_MEMORY
        )
        self._chunking = None if fits else chunking
        self._chunk = len(ids)
        if self._chunking:
            at_once = self._chunking.memory * _SHARE_OF_MEMORY / _BYTES_PER_TOKEN / num_local_threads()
            self._chunk = max(int(at_once), _MIN_ROWS)

    def count(self) -> Counts:
        """Return the tables of order 1 to N."""
        tables = [self._unigrams()]
        tables += reversed(list(self._packed_tables(tables[0])))
        for order in range(len(tables) + 1, self._max_order + 1):
            tables.append(self._table(order, self._merged_parts(self._ranked_runs(order, tables))))
        counts = Counts(self._vocab_size, tables, [])
        starts = [int(rows[0]) for rows in counts.rows_of(np.asarray(self._ids[: self._max_order]), self._max_order)]
        return Counts(self._vocab_size, tables, starts)

    def _unigrams(self) -> Table:
        counts = np.zeros(self._vocab_size, np.int64)
        first = 0
        if self._before is not None:
            counts[: len(self._before.unigrams)] = self._before.unigrams
            first = self._max_order - 1
        for start in range(first, len(self._ids), _ROWS_AT_ONCE):
            found = np.bincount(self._ids[start : start + _ROWS_AT_ONCE])
            counts[: len(found)] += found
        return Table(np.arange(self._vocab_size), counts)

    def _packed_tables(self, unigrams: Table) -> Iterator[Table]:
        """Yield the tables of the orders that can be packed, the highest first, without that of order 1."""
        order, bits, ids = self._num_packed, self._bits, self._ids
        if order < 2:
            return
        runs = self._packed_runs(order)
        if self._before is not None:
            runs.append(self._before.run)
        run = self._merged(runs, f"packed{order}")
        while True:
            below = last_key(ids, order - 1, bits)
            rows = shortened(run, below, bits, _ROWS_AT_ONCE)
            shorter = self._stored(f"packed{order - 1}", rows) if order > 2 else None
            yield self._table(order, over_table_below(run, order, below, bits, self._vocab_size, _ROWS_AT_ONCE))
            if order == self._keep:
                self.kept = PackedCounts(order, bits, run, unigrams.counts)
            else:
                self._remove(run)
            if shorter is None:
                return
            run, order = shorter, order - 1

    def _packed_runs(self, order: int) -> list[Run]:
        """Return the runs of all chunks."""
        count = partial(count_packed, num_places=self._chunk, order=order, bits=self._bits)
        results = (
            map(count, self._chunks(order))
            if self._chunking is None
            else map_chunks(count, self._chunks(order), self._chunking.scheduler)
        )
        return [self._stored(f"chunk{order}-{index}", iter([run.mapped()])) for index, run in enumerate(results)]

    def _ranked_runs(self, order: int, tables: Sequence[Table]) -> list[Run]:
        """Return the runs of an order whose tokens are too wide to be packed: keys over the table below."""
        counts, runs = Counts(self._vocab_size, list(tables), []), []
        for index, chunk in enumerate(self._chunks(order)):
            below = counts.rows_of(chunk, order - 1)[-1][:-1]
            run = run_lengths(below * self._vocab_size + chunk[order - 1 :])
            runs.append(self._stored(f"chunk{order}-{index}", iter([run.mapped()])))
        return runs

    def _chunks(self, order: int) -> Iterator[Ids]:
        """Yield overlapping chunks: each n-gram of the text begins in one of them."""
        for start in range(0, len(self._ids), self._chunk):
            yield self._ids[start : start + self._chunk + order - 1]

    def _merged(self, runs: list[Run], name: str) -> Run:
        return runs[0] if len(runs) == 1 else self._stored(name, self._merged_parts(runs))

    def _merged_parts(self, runs: list[Run]) -> Iterator[Part]:
        rows_at_once = max((len(run) for run in runs), default=0)
        if self._chunking is not None:
            memory = self._chunking.memory * _SHARE_OF_MEMORY
            rows_at_once = int(memory / (len(runs) * _BYTES_PER_ENTRY * _MERGE_COPIES))
        yield from merge(runs, max(rows_at_once, _MIN_ROWS))
        for run in runs:
            self._remove(run)

    def _stored(self, name: str, parts: Iterator[Part]) -> Run:
        """Return parts as a run: in a file where chunks are counted, else in memory."""
        if self._chunking is not None:
            return write_run(self._chunking.folder / name, parts)
        keys, counts = zip(*parts, strict=True)
        return MemoryRun(np.concatenate(keys), np.concatenate(counts))

    def _table(self, order: int, parts: Iterator[Part]) -> Table:
        return Table(*self._stored(f"order{order}", parts).mapped())

    def _remove(self, run: Run) -> None:
        if isinstance(run, FileRun):
            run.remove()
