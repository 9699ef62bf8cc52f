"""Counting a text in chunks: tasks for threads, or for the workers of a cluster, that exchange files.

1. For each chunk of the text, a task counts its n-grams and writes them, sorted: a *run*.
2. The keys are divided into ranges. For each range, a task merges what the runs have of it, and derives the shorter
   n-grams.
3. For each range, a task writes its rows of the tables.

A task reads and writes files in a folder that all workers share, and returns only how much it wrote. It depends on
nothing else, so a task that was lost with its worker is done again by another one: a run appears whole, and the rows
of a range are written to the same place with the same bytes.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from seqlm.ngrams.counts.count_tables import Ids, IdStream
from seqlm.ngrams.counts.packing import (
    Packing,
    count_over_tables,
    count_packed,
    last_key,
    over_table_below,
    parts_of,
    prefix_counts,
)
from seqlm.ngrams.counts.sorted_counts import (
    CountsInFiles,
    CountsInMemory,
    Keys,
    Part,
    SortedCounts,
    merge,
    reserve,
    write_part,
    write_run,
)
from seqlm.ngrams.counts.workers import Workers

Count = Callable[[Ids], CountsInMemory]
"""Counts the n-grams of a chunk."""

BYTES_PER_TOKEN = 48
"""Memory that counting packed n-grams takes at most, per token of a chunk."""
BYTES_PER_ENTRY = 16
"""A key and its count."""
_MERGE_COPIES = 5
"""Copies of its buffers that a merge holds at once, at most."""
_MIN_ROWS = 1 << 10
MIN_CHUNK = 1 << 20
"""Tokens of a chunk, if memory allows; for fewer, starting tasks and merging their runs takes longer than counting."""
_TASKS_EACH = 4
"""Tasks for each worker, so that a slow or lost one holds up the others for a fraction of their time only."""
_SAMPLES, _SAMPLE_TOKENS = 64, 1 << 12
"""Pieces of the text, and their size, from which the ranges of keys are chosen."""
_SMALL_BITS = 20
"""Keys of so few bits are few: where ranges have some in common, the caller's process merges them."""


class Shuffle:
    """Counts one stream of tokens. Files are in a new folder within ``folder``."""

    def __init__(self, ids: IdStream, vocab_size: int, folder: Path, workers: Workers) -> None:
        # The name is new: a worker may still run a task of a killed stage, which must not write into these files.
        self.folder = folder.resolve() / f"tasks-{secrets.token_hex(8)}"
        self.folder.mkdir()
        self._ids = workers.readable(ids, self.folder)
        self._vocab_size = vocab_size
        self._workers = workers

    def count_packed(
        self, order: int, packing: Packing, earlier: Sequence[SortedCounts], start: int
    ) -> tuple[Part, list[CountsInFiles], list[CountsInFiles]]:
        """Count the n-grams up to an order, at least 2, that can be packed.

        ``earlier`` has those of this order that begin before position ``start``. Return the keys and counts of order 1,
        the tables of the other orders, and the packed n-grams of the highest one.
        """
        # A range has all n-grams that begin with the same `nested` tokens. Shorter ones may be in several ranges.
        nested = min(1 + _SMALL_BITS // packing.token_bits, order)
        if packing.pairs is not None:
            nested -= nested % 2
        shift = packing.bits(order) - packing.bits(nested)
        count = partial(count_packed, order=order, packing=packing)
        cuts, ranges = self._counted_ranges(order, count, shift, start, earlier)
        # The last n tokens are no prefix of an n-gram, where they occur last.
        ends: list[dict[int, int]] = [{} for _ in ranges]
        for n in range(1, order):
            last = np.asarray(self._ids[len(self._ids) - n :])
            begin = last_key(last[:nested], nested, packing) << shift if n >= nested else 0
            ends[int(np.searchsorted(cuts, begin, side="right"))][n] = last_key(last, n, packing)
        merge_range = partial(merge_packed, packing, order, self._workers.memory, self.folder)
        merged = self._workers.map(merge_range, list(zip(range(len(ranges)), ranges, ends, strict=True)))
        _remove(ranges)
        parts = {n: [counts[order - n] for counts in merged] for n in range(1, order + 1)}
        unigrams = np.zeros(self._vocab_size, np.int64)
        for part in parts[1]:
            keys, counts = part.read(0, len(part))
            unigrams[keys] += counts
        for n in range(2, nested):
            parts[n] = [merge_runs(self._workers.memory, (self.folder / f"packed{n}", parts[n]))]
        tables = self._tables(order, packing, nested, parts)
        return (np.arange(self._vocab_size), unigrams), tables, parts[order]

    def count_over(self, tables: list[CountsInFiles]) -> CountsInFiles:
        """Count the n-grams of the order above the tables, which begin with order 2. Return their table."""
        order = len(tables) + 2
        count = partial(count_over_tables, tables, self._vocab_size)
        # Each lower order has its row for each token.
        _, ranges = self._counted_ranges(order, count, bytes_per_token=BYTES_PER_TOKEN + 8 * order)
        tasks = [(self.folder / f"part{index}", runs) for index, runs in enumerate(ranges)]
        parts = self._workers.map(partial(merge_runs, self._workers.memory), tasks)
        _remove(ranges)
        rows = np.cumsum([0, *map(len, parts)]).tolist()
        table = reserve(self.folder / f"order{order}", rows[-1])
        places = [table.part(*rows[index : index + 2]) for index in range(len(parts))]
        self._workers.map(copy_run, list(zip(parts, places, strict=True)))
        _remove([parts])
        return table

    def _counted_ranges(
        self,
        order: int,
        count: Count,
        shift: int = 0,
        start: int = 0,
        earlier: Sequence[SortedCounts] = (),
        bytes_per_token: int = BYTES_PER_TOKEN,
    ) -> tuple[Keys, list[list[CountsInFiles]]]:
        """Count the n-grams of an order that begin at position ``start`` or later.

        Return the keys at which ranges begin, except for the first range, and what each range has of all runs. The low
        ``shift`` bits of these keys are 0.
        """
        stop = len(self._ids) - order + 1
        cuts = self._cuts(order, count, shift)
        chunk = min(self._workers.memory // bytes_per_token, max(stop // self._num_tasks, MIN_CHUNK))
        starts = range(start, stop, max(chunk, _MIN_ROWS))
        tasks = [
            (self.folder / f"run{order}-{index}", begin, begin + starts.step + order - 1)
            for index, begin in enumerate(starts)
        ]
        counted = self._workers.map(partial(write_chunk, self._ids, count, cuts), tasks)
        for index, counts in enumerate(earlier):
            if isinstance(counts, CountsInMemory):
                counts = write_run(self.folder / f"earlier{index}", [counts.mapped()])
            counted.append((counts, bounds(counts.mapped()[0], cuts)))
        pairs = range(len(cuts) + 1)
        return cuts, [[run.part(*at[index : index + 2]) for run, at in counted] for index in pairs]

    def _cuts(self, order: int, count: Count, shift: int) -> Keys:
        """Return keys that divide those of an order into ranges of about the same size, none of them empty."""
        last = max(len(self._ids) - order + 1 - _SAMPLE_TOKENS, 0)
        starts = np.unique(np.linspace(0, last, _SAMPLES, dtype=np.int64)).tolist()
        samples = [count(self._ids[start : start + _SAMPLE_TOKENS + order - 1]).keys for start in starts]
        keys = np.unique(np.concatenate(samples))
        chosen = keys[len(keys) * np.arange(1, self._num_tasks) // self._num_tasks] >> shift << shift
        return np.unique(chosen[chosen > keys[0]])

    @property
    def _num_tasks(self) -> int:
        return _TASKS_EACH * self._workers.number

    def _tables(
        self, order: int, packing: Packing, nested: int, parts: dict[int, list[CountsInFiles]]
    ) -> list[CountsInFiles]:
        """Return the tables from order 2 on, given the packed n-grams of each order, which are removed."""
        rows = {n: np.cumsum([0, *map(len, parts[n])]).tolist() for n in parts}
        tables, tasks = [], []
        for n in range(2, order + 1):
            table = reserve(self.folder / f"order{n}", rows[n][-1])
            tables.append(table)
            for index, part in enumerate(parts[n]):
                place, at = table.part(*rows[n][index : index + 2]), index if n > nested else 0
                below = parts[n - 1][at] if n > 2 else None
                tasks.append((n, part, below, rows[n - 1][at], place))
        self._workers.map(partial(write_rows, packing, self._vocab_size), tasks)
        _remove(parts[n] for n in range(1, order))
        return tables


def write_chunk(
    ids: IdStream, count: Count, cuts: Keys, task: tuple[Path, int, int]
) -> tuple[CountsInFiles, list[int]]:
    """Count a chunk, given the stem of its run, its start and its stop; return the run and where its ranges begin."""
    stem, start, stop = task
    counts = count(ids[start:stop])
    return write_run(stem, [counts.mapped()]), bounds(counts.keys, cuts)


def bounds(keys: Keys, cuts: Keys) -> list[int]:
    """Return where each range of sorted keys begins, and where the last one ends."""
    return [0, *np.searchsorted(keys, cuts).tolist(), len(keys)]


def merge_runs(memory: int, task: tuple[Path, Sequence[CountsInFiles]]) -> CountsInFiles:
    """Merge runs into one, given its stem."""
    stem, runs = task
    buffer_rows = memory // (len(runs) * BYTES_PER_ENTRY * _MERGE_COPIES)
    return write_run(stem, merge(runs, max(buffer_rows, _MIN_ROWS)))


def merge_packed(
    packing: Packing, order: int, memory: int, folder: Path, task: tuple[int, list[CountsInFiles], dict[int, int]]
) -> list[CountsInFiles]:
    """Merge what the runs have of a range, given its number; return its n-grams of the order, then of all lower ones.

    The task also has, by their order, those n-grams of the range with which the stream ends.
    """
    index, runs, ends = task
    merged = [merge_runs(memory, (folder / f"packed{order}-{index}", runs))]
    for n in range(order - 1, 0, -1):
        prefixes = prefix_counts(merged[-1], n + 1, packing, ends.get(n))
        merged.append(write_run(folder / f"packed{n}-{index}", prefixes))
    return merged


def write_rows(
    packing: Packing, vocab_size: int, task: tuple[int, CountsInFiles, CountsInFiles | None, int, CountsInFiles]
) -> None:
    """Write a range's rows of a table, given its order, the n-grams, those below, their first row, and the place."""
    order, counts, below, first_row, place = task
    write_part(place, over_table_below(counts, below, order, packing, vocab_size, first_row))


def copy_run(task: tuple[CountsInFiles, CountsInFiles]) -> None:
    """Copy a run to its place in other files."""
    run, place = task
    write_part(place, parts_of(run))


def _remove(runs: Iterable[Iterable[CountsInFiles]]) -> None:
    """Delete the files of runs."""
    for stem in {run.stem for group in runs for run in group}:
        CountsInFiles(stem, 0).remove()
