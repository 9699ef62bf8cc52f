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


class Run(Protocol):
    """Keys, rising and distinct, with their counts."""

    def __len__(self) -> int:
        """Return the number of keys."""
        ...

    def read(self, start: int, stop: int) -> Part:
        """Return the keys from place ``start`` up to ``stop`` or the end, and their counts."""
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


def run_lengths(keys: Keys) -> MemoryRun:
    """Sort ``keys`` in place and return each distinct one with how often it occurs."""
    keys.sort()
    borders = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
    return MemoryRun(keys[borders], np.diff(borders, append=len(keys)).astype(np.int64))


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
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([keys for keys, _ in parts])
    # A stable sort finds the sorted runs in its input and merges them.
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    borders = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[borders], np.add.reduceat(np.concatenate([counts for _, counts in parts])[order], borders)
