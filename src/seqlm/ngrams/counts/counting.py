"""Counting n-grams: all at once in memory, or in chunks if memory is short.

The longest n-grams are counted, and the shorter ones follow from them. The n-grams of a chunk are packed into one
integer each, sorted, and run-length counted; the sorted counts of all chunks are merged. A text that fits into memory
is a single chunk. N-grams too wide for 64 bits are counted by keys over the table of the order below.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, MachineError
from seqlm.core.threads import default_threads, imap
from seqlm.ngrams.counts.count_tables import Ids, IdStream, NgramCounts
from seqlm.ngrams.counts.sorted_counts import (
    CountsInMemory,
    Keys,
    Part,
    SortedCounts,
    add_equal_keys,
    are_first,
    insert_key,
    merge,
    run_lengths,
    write_run,
)

_KEY_BITS = 63
"""Bits of a key; the 64th is the sign."""
_HISTOGRAM_BITS = 20
"""Keys of at most this many bits are counted in an array with an entry for each possible key, without sorting."""
_PACKED_AT_ONCE = 1 << 16
"""Keys that are made at once, so that all this takes stays in the processor's cache."""
_ROWS_AT_ONCE = 1 << 20
"""Rows of sorted counts, or tokens of a text, that are worked on at once."""


class Pairs:
    """The pairs of neighbouring tokens that occur in a stream, numbered in order.

    To find them takes ``vocab_size ** 2`` bytes.
    """

    def __init__(self, ids: IdStream, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        occurs = np.zeros(-(-(vocab_size**2) // 64) * 64, bool)
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            block = ids[start : start + _ROWS_AT_ONCE + 1].astype(np.int64)
            occurs[block[:-1] * vocab_size + block[1:]] = True
        self.first, self.second = np.divmod(np.flatnonzero(occurs), vocab_size)
        """The tokens of each pair."""
        # One bit for each possible pair, and for every 64 of them how many pairs there are before.
        self._occurs = np.packbits(occurs, bitorder="little").view("<u8")
        self._numbers = np.cumsum(np.bitwise_count(self._occurs), dtype=np.int32) - np.bitwise_count(self._occurs)

    def numbers(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the pair at each position of ``ids`` where one begins."""
        pairs = ids[:-1] * self._vocab_size + ids[1:]
        words, bits = pairs >> 6, (pairs & 63).astype(np.uint64)
        before = self._occurs[words] & ((np.uint64(1) << bits) - np.uint64(1))
        found: NDArray[np.int64] = self._numbers[words] + np.bitwise_count(before).astype(np.int64)
        return found


@dataclass(frozen=True)
class Packing:
    """How the n-grams of a stream are packed into keys."""

    token_bits: int
    pairs: Pairs | None = None
    """If there are any, pairs of tokens are packed, not single tokens."""

    @classmethod
    def of(cls, ids: IdStream, vocab_size: int, max_order: int, memory: int) -> Self:
        """Return a packing with which n-grams up to ``max_order`` fit, if one takes at most ``memory`` bytes."""
        plain = cls(_bits(vocab_size))
        if plain.max_order >= max_order or vocab_size**2 > memory:
            return plain
        return cls(plain.token_bits, Pairs(ids, vocab_size))

    @cached_property
    def pair_bits(self) -> int:
        """The bits of two tokens."""
        return 2 * self.token_bits if self.pairs is None else _bits(len(self.pairs.first))

    def bits(self, order: int) -> int:
        """Return the bits of a key."""
        return order // 2 * self.pair_bits + order % 2 * self.token_bits

    @property
    def max_order(self) -> int:
        """The highest order whose n-grams fit into a key."""
        return next(order for order in count(1) if self.bits(order + 1) > _KEY_BITS)

    def keys(self, ids: Ids, order: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
        """Return the key of the n-gram of an order, at least 2, at each position of ``ids`` where one begins."""
        num_keys = len(ids) - order + 1
        parts, part_bits, step = ids.astype(dtype), self.token_bits, 1
        if self.pairs is not None:
            parts, part_bits, step = self.pairs.numbers(ids.astype(np.int64)).astype(dtype), self.pair_bits, 2
        keys: NDArray[Any] = parts[:num_keys].copy()
        for offset in range(step, order - step + 1, step):
            keys <<= part_bits
            keys |= parts[offset : offset + num_keys]
        if self.pairs is not None and order % 2:
            keys <<= self.token_bits
            keys |= ids[order - 1 :].astype(dtype)
        return keys

    def split(self, keys: Keys, order: int) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys of the first n - 1 tokens, and the last tokens."""
        if self.pairs is None or order % 2:
            return keys >> self.token_bits, keys & ((1 << self.token_bits) - 1)
        pairs = keys & ((1 << self.pair_bits) - 1)
        return (keys >> self.pair_bits << self.token_bits) | self.pairs.first[pairs], self.pairs.second[pairs]


@dataclass(frozen=True)
class PackedCounts:
    """The n-grams of one order in a stream as packed keys, with their counts."""

    sorted_counts: SortedCounts
    packing: Packing
    order: int
    num_tokens: int
    """Tokens of the stream."""


def _bits(number: int) -> int:
    """Return how many bits tell so many things apart."""
    return max((number - 1).bit_length(), 1)


def count_packed(ids: Ids, *, num_starts: int, order: int, packing: Packing) -> CountsInMemory:
    """Count the n-grams of an order that begin at the first ``num_starts`` positions of ``ids``."""
    num_keys, bits = max(min(num_starts, len(ids) - order + 1), 0), packing.bits(order)
    dtype: np.dtype[Any] = np.dtype(np.uint32 if bits <= 32 else np.int64)
    blocks = (
        packing.keys(ids[start : min(start + _PACKED_AT_ONCE, num_keys) + order - 1], order, dtype)
        for start in range(0, num_keys, _PACKED_AT_ONCE)
    )
    if bits <= _HISTOGRAM_BITS:
        totals = np.zeros(1 << bits, np.int64)
        for block in blocks:
            totals += np.bincount(block, minlength=len(totals))
        keys = np.flatnonzero(totals)
        return CountsInMemory(keys, totals[keys])
    packed, end = np.empty(num_keys, dtype), 0
    for block in blocks:
        packed[end : end + len(block)] = block
        end += len(block)
    return run_lengths(packed)


def prefix_counts(sorted_counts: SortedCounts, ids: IdStream, order: int, packing: Packing) -> Iterator[Part]:
    """Yield the counts of order n - 1 in the stream ``ids``, which follow from those of order n.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends with it.
    """
    last = packing.keys(np.asarray(ids[len(ids) - order + 1 :]), order - 1, np.dtype(np.int64))
    prefixes = ((packing.split(keys, order)[0], counts) for keys, counts in _parts_of(sorted_counts))
    return add_equal_keys(insert_key(prefixes, int(last[0])))


def over_table_below(
    sorted_counts: SortedCounts, below: SortedCounts | None, order: int, packing: Packing, vocab_size: int
) -> Iterator[Part]:
    """Yield sorted counts with the keys of a table: the row of the prefix in the table below, and the last token.

    ``below`` has those of the order below; None stands for order 1, whose table has a row for every token. In other
    tables each row is the prefix of some n-gram of ``sorted_counts``, except perhaps the one that the stream ends with.
    """
    row = 0
    for keys, counts in _parts_of(sorted_counts):
        rows, tokens = packing.split(keys, order)
        if below is not None:
            is_new = are_first(rows)
            prefixes = rows[is_new]
            row += int(np.searchsorted(below.read(row, row + 2)[0], prefixes[0]))
            candidates, _ = below.read(row, row + len(prefixes))
            # From the row on that is no prefix, rows are one further.
            found = np.arange(row, row + len(prefixes)) + (candidates < prefixes)
            row, rows = int(found[-1]), found[np.cumsum(is_new) - 1]
        yield rows * vocab_size + tokens, counts


def _parts_of(sorted_counts: SortedCounts) -> Iterator[Part]:
    for start in range(0, len(sorted_counts), _ROWS_AT_ONCE):
        yield sorted_counts.read(start, start + _ROWS_AT_ONCE)


_BYTES_PER_TOKEN = 48
"""Memory that counting one order takes at most, per token of a chunk."""
_BYTES_PER_ENTRY = 16
"""A key and its count."""
_MERGE_COPIES = 5
"""Copies of its buffers that a merge holds at once, at most."""
_MEMORY_SHARE = 0.5
"""Share of the memory setting that arrays may take; the rest is for Python and its packages."""
_MIN_ROWS = 1 << 10
_IDS_AT_ONCE = 1 << 20
_CONNECT_S = 10
"""Seconds to wait for a scheduler to answer."""


@dataclass(frozen=True)
class Chunking:
    """How to count a text that may be larger than memory."""

    memory: int
    """Bytes that the process may take; a text that needs more is counted in chunks."""
    folder: Path
    """Where the sorted counts and then the tables are stored; it must exist as long as the counts are used."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers count the chunks; None: threads of this process do."""


def count_ngrams(ids: IdStream, vocab_size: int, max_order: int, chunking: Chunking | None = None) -> NgramCounts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens. See :class:`NgramCounter`."""
    counter = NgramCounter(ids, vocab_size, max_order, chunking)
    counts = counter.count()
    if counter.packed is not None:
        counter.packed.sorted_counts.remove()
    return counts


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
        the same way, they are not counted again. Raises DataError if the stream has fewer than ``max_order`` tokens.
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
        num_starts = len(ids) - (first.num_tokens if first else 0)
        self._chunk = max(-(-num_starts // default_threads()), _IDS_AT_ONCE)
        """Positions at which the n-grams of one chunk begin."""
        if chunking is not None:
            memory = chunking.memory * _MEMORY_SHARE
            needed = len(ids) * (_BYTES_PER_TOKEN + _BYTES_PER_ENTRY * max(max_order - 2, 0))
            if chunking.scheduler is None and needed <= memory:
                self._chunking = None
            else:
                self._chunk = max(int(memory / _BYTES_PER_TOKEN / default_threads()), _MIN_ROWS)

    def count(self) -> NgramCounts:
        """Return the counts. Raises MachineError if the scheduler does not answer."""
        arrays = [self._unigrams(), *reversed(list(self._packed_orders()))]
        for order in range(len(arrays) + 1, self._max_order + 1):
            count = partial(_count_over_table_below, NgramCounts(arrays))
            all_sorted = self._counted_chunks(order, 0, count, num_threads=1)
            arrays.append(self._stored(f"order{order}", self._merged(all_sorted)).mapped())
        counts, first = NgramCounts(arrays), self._ids[: self._max_order]
        counts.starts = [int(rows[0]) for rows in counts.rows_of(first, self._max_order)]
        return counts

    def _unigrams(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts = np.zeros(self._vocab_size, np.int64)
        for start in range(0, len(self._ids), _IDS_AT_ONCE):
            counts += np.bincount(self._ids[start : start + _IDS_AT_ONCE], minlength=self._vocab_size)
        return np.arange(self._vocab_size), counts

    def _packed_orders(self) -> Iterator[Part]:
        """Yield the keys and counts of the orders that can be packed, the highest first, without order 1."""
        at_once = len(self._ids) if self._chunking is None else self._chunk
        packing = Packing.of(self._ids, self._vocab_size, self._max_order, memory=at_once * _BYTES_PER_TOKEN)
        highest = min(self._max_order, packing.max_order)
        if highest < 2:
            return
        all_sorted, start = self._packed_before(highest, packing)
        count = partial(count_packed, num_starts=self._chunk, order=highest, packing=packing)
        all_sorted += self._packed_chunks(highest, start, count)
        sorted_counts = self._stored(f"packed{highest}", self._merged(all_sorted))
        self.packed = PackedCounts(sorted_counts, packing, highest, len(self._ids))
        for order in range(highest, 1, -1):
            below = None
            if order > 2:
                below = self._stored(f"packed{order - 1}", prefix_counts(sorted_counts, self._ids, order, packing))
            yield self._stored(
                f"order{order}", over_table_below(sorted_counts, below, order, packing, self._vocab_size)
            ).mapped()
            if order < highest:
                sorted_counts.remove()
            if below is not None:
                sorted_counts = below

    def _packed_before(self, order: int, packing: Packing) -> tuple[list[SortedCounts], int]:
        """Return the n-grams of an order that are counted already, and where the first of the others begins."""
        first = self._first
        if first is None or (first.order, first.packing) != (order, packing):
            return [], 0
        return [first.sorted_counts], first.num_tokens - order + 1

    def _packed_chunks(self, order: int, start: int, count: Callable[[Ids], CountsInMemory]) -> list[SortedCounts]:
        """Return the sorted counts of all chunks from a position on, counted on threads or on a cluster."""
        if self._chunking is None or self._chunking.scheduler is None:
            return self._counted_chunks(order, start, count, default_threads())
        all_sorted = _map_on_cluster(count, self._chunks(order, start), self._chunking.scheduler)
        return [self._stored_chunk(order, index, sorted_counts) for index, sorted_counts in enumerate(all_sorted)]

    def _counted_chunks(
        self, order: int, start: int, count: Callable[[Ids], CountsInMemory], num_threads: int
    ) -> list[SortedCounts]:
        """Return the sorted counts of all chunks from a position on, counted on threads of this process."""

        def count_and_store(chunk: tuple[int, Ids]) -> SortedCounts:
            # Each thread stores its own, so that none waits for that in memory.
            return self._stored_chunk(order, chunk[0], count(chunk[1]))

        return list(imap(count_and_store, enumerate(self._chunks(order, start)), num_threads))

    def _stored_chunk(self, order: int, index: int, sorted_counts: CountsInMemory) -> SortedCounts:
        return self._stored(f"chunk{order}-{index}", [sorted_counts.mapped()])

    def _chunks(self, order: int, start: int) -> Iterator[Ids]:
        """Yield overlapping chunks: each n-gram of the text from a position on begins in exactly one of them."""
        for begin in range(start, len(self._ids), self._chunk):
            yield self._ids[begin : begin + self._chunk + order - 1]

    def _merged(self, all_sorted: list[SortedCounts]) -> Iterator[Part]:
        """Yield the union of sorted counts, then remove them."""
        buffer_rows = max(map(len, all_sorted))
        if self._chunking is not None:
            memory = self._chunking.memory * _MEMORY_SHARE
            buffer_rows = int(memory / (len(all_sorted) * _BYTES_PER_ENTRY * _MERGE_COPIES))
        yield from merge(all_sorted, max(buffer_rows, _MIN_ROWS))
        for sorted_counts in all_sorted:
            sorted_counts.remove()

    def _stored(self, name: str, parts: Iterable[Part]) -> SortedCounts:
        """Return parts as sorted counts: in files if the text is counted in chunks, otherwise in memory."""
        if self._chunking is not None:
            return write_run(self._chunking.folder / name, parts)
        first, *others = parts
        if not others:
            return CountsInMemory(*first)
        keys, counts = zip(first, *others, strict=True)
        return CountsInMemory(np.concatenate(keys), np.concatenate(counts))


def _count_over_table_below(counts: NgramCounts, chunk: Ids) -> CountsInMemory:
    """Count the n-grams of the order above those of ``counts`` in a chunk."""
    prefixes = counts.rows_of(chunk, counts.max_order)[-1][:-1]
    return run_lengths(prefixes * counts.vocab_size + chunk[counts.max_order :])


def _map_on_cluster(
    function: Callable[[Ids], CountsInMemory], chunks: Iterator[Ids], scheduler: str
) -> Iterator[CountsInMemory]:
    """Yield ``function(chunk)`` for each chunk, in no particular order; the workers need this package."""
    from distributed import Client, as_completed

    try:
        client = Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"the Dask scheduler at {scheduler} does not answer: start it, or unset its address"
        ) from error
    with client:

        def submit(chunk: Ids) -> Any:
            # Scattered on its own, the chunk travels to a worker as plain bytes, not inside the task.
            data = client.scatter(np.ascontiguousarray(chunk), hash=False)
            return client.submit(function, data, pure=False)

        num_at_once = 2 * max(sum(client.nthreads().values()), 1)
        running = as_completed([submit(chunk) for chunk in islice(chunks, num_at_once)], loop=client.loop)
        for future in running:
            yield future.result()
            for chunk in islice(chunks, 1):
                running.add(submit(chunk))
