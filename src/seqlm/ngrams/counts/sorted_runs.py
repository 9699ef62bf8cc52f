"""Sorted runs of keys with their counts, in memory or in files, and merging them.

A run is what counting one chunk of a text gives: each key once, rising, with its count.
Runs in files are read piece by piece, never mapped, so that memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Part = tuple[Keys, NDArray[np.int64]]
"""Keys, rising and distinct, and their counts."""

_ENTRY = np.dtype(np.int64)
COMPILED_FROM_ROWS = 5_000_000
"""So many entries are merged by compiled loops: what these save exceeds their compilation."""


class Run(Protocol):
    """Keys, rising and distinct, with their counts."""

    def __len__(self) -> int:
        """Return the number of keys."""
        ...

    def read(self, start: int, stop: int) -> Part:
        """Return the keys from place ``start`` up to ``stop`` or the end, and their counts."""
        ...

    def mapped(self) -> Part:
        """Return the whole run; where it is in files, mapped into memory."""
        ...


@dataclass(frozen=True)
class MemoryRun:
    """A run in memory."""

    keys: Keys
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, start: int, stop: int) -> Part:
        """Return the keys from place ``start`` up to ``stop`` or the end, and their counts."""
        return self.keys[start:stop], self.counts[start:stop]

    def mapped(self) -> Part:
        """Return the whole run."""
        return self.keys, self.counts


@dataclass(frozen=True)
class FileRun:
    """A run in two files of 64-bit integers: ``STEM.keys`` and ``STEM.counts``."""

    stem: Path
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self, start: int, stop: int) -> Part:
        """Return the keys from place ``start`` up to ``stop`` or the end, and their counts."""
        count = max(min(stop, self.length) - start, 0)
        keys, counts = (
            np.fromfile(path, _ENTRY, count=count, offset=start * _ENTRY.itemsize) for path in _paths(self.stem)
        )
        return keys, counts

    def mapped(self) -> Part:
        """Return the whole run, mapped into memory."""
        if self.length == 0:  # an empty file cannot be mapped
            return np.empty(0, _ENTRY), np.empty(0, _ENTRY)
        keys, counts = (np.memmap(path, _ENTRY, mode="r") for path in _paths(self.stem))
        return keys, counts

    def remove(self) -> None:
        """Delete the files."""
        for path in _paths(self.stem):
            path.unlink()


def _paths(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(stem.name + ".keys"), stem.with_name(stem.name + ".counts")


def write_run(stem: Path, parts: Iterable[Part]) -> FileRun:
    """Write parts, which follow each other in rising order, as one run."""
    length = 0
    keys_path, counts_path = _paths(stem)
    with keys_path.open("wb") as keys_file, counts_path.open("wb") as counts_file:
        for keys, counts in parts:
            keys_file.write(np.ascontiguousarray(keys, _ENTRY).data)
            counts_file.write(np.ascontiguousarray(counts, _ENTRY).data)
            length += len(keys)
    return FileRun(stem, length)


def run_lengths(keys: NDArray[np.integer]) -> MemoryRun:
    """Sort ``keys`` in place and return each distinct one with how often it occurs."""
    keys.sort()
    borders = np.flatnonzero(are_first(keys))
    return MemoryRun(keys[borders].astype(np.int64, copy=False), np.diff(borders, append=len(keys)).astype(np.int64))


def are_first(keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for each of sorted keys whether it differs from the one before."""
    found = np.empty(len(keys), bool)
    found[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=found[1:])
    return found


def blocks_of(run: Run, num_rows: int) -> Iterator[Part]:
    """Yield a run in parts of so many rows."""
    for start in range(0, len(run), num_rows):
        yield run.read(start, start + num_rows)


def with_one_more(parts: Iterable[Part], key: int) -> Iterator[Part]:
    """Yield parts whose keys rise, and among them, in its place, one more entry of count 1."""
    one = (np.array([key]), np.array([1]))
    is_due = True
    for keys, counts in parts:
        if is_due and len(keys) and keys[-1] >= key:
            place, is_due = int(np.searchsorted(keys, key)), False
            yield np.insert(keys, place, key), np.insert(counts, place, 1)
        else:
            yield keys, counts
    if is_due:
        yield one


def with_equals_added(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts whose keys rise, equal ones side by side, with each key once and its counts added up."""
    held: Part | None = None
    for keys, counts in parts:
        if len(keys) == 0:
            continue
        firsts = np.flatnonzero(are_first(keys))
        keys, counts = keys[firsts], np.add.reduceat(counts, firsts)
        if held is not None:
            if held[0][0] == keys[0]:
                counts[0] += held[1][0]
            else:
                yield held
        # The next part may begin with the last key.
        held = keys[-1:], counts[-1:]
        yield keys[:-1], counts[:-1]
    if held is not None:
        yield held


def merge(runs: Sequence[Run], buffer_rows: int) -> Iterator[Part]:
    """Yield the union of runs in rising order, counts of equal keys added up.

    At most ``buffer_rows`` entries of each run are in memory at once.
    """
    places = [0] * len(runs)
    buffers: list[Part] = [(np.empty(0, _ENTRY), np.empty(0, _ENTRY)) for _ in runs]
    while True:
        for index, run in enumerate(runs):
            if len(buffers[index][0]) == 0 and places[index] < len(run):
                buffers[index] = run.read(places[index], places[index] + buffer_rows)
                places[index] += len(buffers[index][0])
        full = [index for index, (keys, _) in enumerate(buffers) if len(keys)]
        if not full:
            return
        # Keys above the last one of any buffer may have equals that are not read yet.
        limits = [buffers[index][0][-1] for index in full if places[index] < len(runs[index])]
        taken: list[Part] = []
        for index in full:
            keys, counts = buffers[index]
            stop = int(np.searchsorted(keys, min(limits), side="right")) if limits else len(keys)
            taken.append((keys[:stop], counts[:stop]))
            buffers[index] = keys[stop:], counts[stop:]
        yield _added([part for part in taken if len(part[0])])


def _added(parts: list[Part]) -> Part:
    """Return the union of parts, counts of equal keys added up."""
    if len(parts) == 1:
        return parts[0]
    if sum(len(keys) for keys, _ in parts) < COMPILED_FROM_ROWS:
        keys = np.concatenate([keys for keys, _ in parts])
        # A stable sort finds the sorted runs in its input and merges them.
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], np.concatenate([counts for _, counts in parts])[order]
        firsts = np.flatnonzero(are_first(keys))
        return keys[firsts], np.add.reduceat(counts, firsts)
    from seqlm.ngrams.counts.kernels import merge_two

    # Two by two, so that each step reads in order.
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [merge_two(*one, *other) for one, other in pairs] + parts[len(parts) // 2 * 2 :]
    return parts[0]
