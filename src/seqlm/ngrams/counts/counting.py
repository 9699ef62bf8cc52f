"""Counting n-grams: all at once in memory, or in chunks if memory is short.

The longest n-grams are counted, and the shorter ones follow from them. The n-grams of a chunk are packed into one
integer each, sorted, and run-length counted; the sorted counts of all chunks are merged. N-grams too wide for 64 bits
are counted by keys over the table of the order below.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.threads import default_threads, imap
from seqlm.ngrams.counts.count_tables import IDS_AT_ONCE, IdStream, NgramCounts
from seqlm.ngrams.counts.packing import (
    Packing,
    bits_of,
    count_over_tables,
    count_packed,
    last_key,
    over_table_below,
    prefix_counts,
)
from seqlm.ngrams.counts.shuffle import BYTES_PER_ENTRY, BYTES_PER_TOKEN, MIN_CHUNK, Count, Shuffle
from seqlm.ngrams.counts.sorted_counts import CountsInFiles, CountsInMemory, Part, SortedCounts, merge
from seqlm.ngrams.counts.workers import Threads, Workers, cluster

_MEMORY_SHARE = 0.5
"""Share of the memory setting that arrays may take; the rest is for Python and its packages."""


@dataclass(frozen=True)
class PackedCounts:
    """The n-grams of one order in a stream as packed keys, with their counts."""

    runs: Sequence[SortedCounts]
    """Together they have each key once."""
    packing: Packing
    order: int
    num_tokens: int
    """Tokens of the stream."""


@dataclass(frozen=True)
class Chunking:
    """How to count a text that may be larger than memory."""

    memory: int
    """Bytes that a process may take; a text that needs more is counted in chunks."""
    folder: Path
    """Where the sorted counts and then the tables are stored; it must exist as long as the counts are used."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers count; all must see ``folder`` at the same path. None: threads of this
    process count."""


def count_ngrams(ids: IdStream, vocab_size: int, max_order: int) -> NgramCounts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens, in memory."""
    return NgramCounter(ids, vocab_size, max_order).count()


class NgramCounter:
    """Counts the n-grams of order 1 to ``max_order`` in one stream of tokens."""

    def __init__(
        self,
        ids: IdStream,
        vocab_size: int,
        max_order: int,
        chunking: Chunking | None = None,
        first: PackedCounts | None = None,
    ) -> None:
        """Prepare to count; without ``chunking``, everything is done in memory.

        ``first`` has the n-grams of the stream's first tokens; if they are of the order that is packed, and packed in
        the same way, they are not counted again, and their files are removed. Raises DataError if the stream has fewer
        than ``max_order`` tokens.
        """
        if len(ids) < max_order:
            raise DataError(f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower ngrams.max_order")
        self.packed: PackedCounts | None = None
        """The n-grams of the highest order that can be packed, after they were counted."""
        self._ids = ids
        self._vocab_size = vocab_size
        self._max_order = max_order
        self._first = first
        self._chunking = chunking
        """None if the text fits into memory."""
        if chunking is not None and chunking.scheduler is None:
            needed = len(ids) * (BYTES_PER_TOKEN + BYTES_PER_ENTRY * max(max_order - 2, 0))
            if needed <= chunking.memory * _MEMORY_SHARE:
                self._chunking = None

    def count(self) -> NgramCounts:
        """Return the counts. Raises MachineError if the scheduler does not answer."""
        arrays = self._in_memory() if self._chunking is None else self._in_chunks(self._chunking)
        counts, first = NgramCounts(arrays), self._ids[: self._max_order]
        counts.starts = [int(rows[0]) for rows in counts.rows_of(first, self._max_order)]
        return counts

    def _in_memory(self) -> list[Part]:
        """Return the keys and counts of each order, counted on threads of this process."""
        packing = Packing.of(self._ids, self._vocab_size, self._max_order, memory=len(self._ids) * BYTES_PER_TOKEN)
        highest, counted = min(self._max_order, packing.max_order), list[CountsInMemory]()
        if highest > 1:
            counted = list(self._packed_in_memory(highest, packing))[::-1]
        for order in range(len(counted) + 2, self._max_order + 1):
            count = partial(count_over_tables, counted, self._vocab_size)
            counted.append(self._merged_in_memory(order, count, []))
        return [self._unigrams(), *(counts.mapped() for counts in counted)]

    def _unigrams(self) -> Part:
        counts = np.zeros(self._vocab_size, np.int64)
        for start in range(0, len(self._ids), IDS_AT_ONCE):
            counts += np.bincount(self._ids[start : start + IDS_AT_ONCE], minlength=self._vocab_size)
        return np.arange(self._vocab_size), counts

    def _packed_in_memory(self, highest: int, packing: Packing) -> Iterator[CountsInMemory]:
        """Yield the tables of the orders that can be packed, the highest first, without order 1."""
        count = partial(count_packed, order=highest, packing=packing)
        counts = self._merged_in_memory(highest, count, self._earlier(highest, packing))
        self.packed = PackedCounts([counts], packing, highest, len(self._ids))
        for order in range(highest, 1, -1):
            below = None
            if order > 2:
                end = last_key(self._ids, order - 1, packing)
                below = _joined(prefix_counts(counts, order, packing, end))
            yield _joined(over_table_below(counts, below, order, packing, self._vocab_size))
            if below is not None:
                counts = below

    def _merged_in_memory(self, order: int, count: Count, earlier: Sequence[SortedCounts]) -> CountsInMemory:
        """Count the n-grams of an order in the whole text, except for its first tokens if they were counted earlier."""
        start, stop = self._first_start(order, earlier), len(self._ids) - order + 1
        chunk = max(-(-(stop - start) // default_threads()), MIN_CHUNK)
        chunks = (self._ids[begin : begin + chunk + order - 1] for begin in range(start, stop, chunk))
        runs = [*earlier, *imap(count, chunks, default_threads())]
        return _joined(merge(runs, max(map(len, runs))))

    def _earlier(self, order: int, packing: Packing) -> Sequence[SortedCounts]:
        """Return the n-grams of the first tokens if they are of this order and packed in the same way."""
        first = self._first
        return first.runs if first is not None and (first.order, first.packing) == (order, packing) else []

    def _first_start(self, order: int, earlier: Sequence[SortedCounts]) -> int:
        """Return where the first n-gram begins that was not counted earlier."""
        return self._first.num_tokens - order + 1 if self._first is not None and earlier else 0

    def _in_chunks(self, chunking: Chunking) -> list[Part]:
        """Return the keys and counts of each order, mapped from files, counted by tasks that exchange files."""
        memory, unigrams, tables = int(chunking.memory * _MEMORY_SHARE), None, list[CountsInFiles]()
        threads: AbstractContextManager[Workers] = nullcontext(Threads(memory))
        with cluster(chunking.scheduler, memory) if chunking.scheduler else threads as workers:
            shuffle = Shuffle(self._ids, self._vocab_size, chunking.folder, workers)
            packing = Packing(bits_of(self._vocab_size))
            if chunking.scheduler is None:  # pairs of tokens are found by one process
                packing = Packing.of(self._ids, self._vocab_size, self._max_order, workers.memory)
            highest = min(self._max_order, packing.max_order)
            if highest > 1:
                earlier = self._earlier(highest, packing)
                start = self._first_start(highest, earlier)
                unigrams, tables, runs = shuffle.count_packed(highest, packing, earlier, start)
                self.packed = PackedCounts(runs, packing, highest, len(self._ids))
            while len(tables) + 1 < self._max_order:
                tables.append(shuffle.count_over(tables))
            tables = [table.move(chunking.folder / table.stem.name) for table in tables]
        return [unigrams or self._unigrams(), *(table.mapped() for table in tables)]


def _joined(parts: Iterable[Part]) -> CountsInMemory:
    first, *others = parts
    if not others:
        return CountsInMemory(*first)
    keys, counts = zip(first, *others, strict=True)
    return CountsInMemory(np.concatenate(keys), np.concatenate(counts))
