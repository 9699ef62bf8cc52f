"""Sorted keys with their counts, in memory or in files, and merging them.

Counting one chunk of a text gives sorted counts: each key once, rising, with its count. Merging reads
files part by part, so that memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import replacing

Keys = NDArray[np.int64]
Part = tuple[Keys, NDArray[np.int64]]
"""Keys and their counts. The keys rise, and each occurs once unless stated otherwise."""

_ENTRY = np.dtype(np.int64)
_LARGEST = int(np.iinfo(_ENTRY).max)
COMPILED_FROM_ROWS = 5_000_000
"""From this many entries on, compiled loops merge them. For fewer, compiling takes longer, and Numba more memory."""


@dataclass(frozen=True)
class CountsInMemory:
    """Sorted counts in memory."""

    keys: Keys
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, start: int, stop: int) -> Part:
        """Return the keys at positions ``start`` to ``stop`` or the end, and their counts."""
        return self.keys[start:stop], self.counts[start:stop]

    def mapped(self) -> Part:
        """Return all of them."""
        return self.keys, self.counts


@dataclass(frozen=True)
class CountsInFiles:
    """Sorted counts in two files of 64-bit integers, ``STEM.keys`` and ``STEM.counts``, or a part of them."""

    stem: Path
    length: int
    first: int = 0
    """The entry of the files that is the first of these counts."""

    def __len__(self) -> int:
        return self.length

    def part(self, start: int, stop: int) -> "CountsInFiles":
        """Return the counts at positions ``start`` to ``stop``, in the same files."""
        return CountsInFiles(self.stem, stop - start, self.first + start)

    def read(self, start: int, stop: int) -> Part:
        """Return the keys at positions ``start`` to ``stop`` or the end, and their counts."""
        offset, number = (self.first + start) * _ENTRY.itemsize, max(min(stop, self.length) - start, 0)
        keys, counts = (np.fromfile(path, _ENTRY, number, offset=offset) for path in _paths(self.stem))
        return keys, counts

    def mapped(self) -> Part:
        """Return all of them, mapped into memory; there must be some."""
        offset = self.first * _ENTRY.itemsize
        keys, counts = (np.memmap(path, _ENTRY, "r", offset, (self.length,)) for path in _paths(self.stem))
        return keys, counts

    def remove(self) -> None:
        """Delete the files."""
        for path in _paths(self.stem):
            path.unlink()

    def move(self, stem: Path) -> "CountsInFiles":
        """Rename the files."""
        for path, target in zip(_paths(self.stem), _paths(stem), strict=True):
            path.replace(target)
        return CountsInFiles(stem, self.length, self.first)


SortedCounts = CountsInMemory | CountsInFiles


def _paths(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(stem.name + ".keys"), stem.with_name(stem.name + ".counts")


def write_run(stem: Path, parts: Iterable[Part]) -> CountsInFiles:
    """Write parts, which follow each other in rising order, as a file of keys and a file of counts, both whole."""
    keys_path, counts_path = _paths(stem)
    with (
        replacing(keys_path) as keys_temporary,
        replacing(counts_path) as counts_temporary,
        keys_temporary.open("wb") as keys_file,
        counts_temporary.open("wb") as counts_file,
    ):
        return CountsInFiles(stem, _write(keys_file, counts_file, parts))


def reserve(stem: Path, length: int) -> CountsInFiles:
    """Make files for as many entries, whose parts :func:`write_part` writes in any order."""
    for path in _paths(stem):
        with path.open("wb") as file:
            file.truncate(length * _ENTRY.itemsize)
    return CountsInFiles(stem, length)


def write_part(target: CountsInFiles, parts: Iterable[Part]) -> None:
    """Write parts over what the files have from the first entry of ``target`` on."""
    keys_path, counts_path = _paths(target.stem)
    with keys_path.open("r+b") as keys_file, counts_path.open("r+b") as counts_file:
        for file in (keys_file, counts_file):
            file.seek(target.first * _ENTRY.itemsize)
        _write(keys_file, counts_file, parts)


def _write(keys_file: BinaryIO, counts_file: BinaryIO, parts: Iterable[Part]) -> int:
    """Write parts to two files, and return how many entries they have."""
    length = 0
    for keys, counts in parts:
        keys_file.write(np.ascontiguousarray(keys, _ENTRY).data)
        counts_file.write(np.ascontiguousarray(counts, _ENTRY).data)
        length += len(keys)
    return length


def run_lengths(keys: NDArray[np.integer]) -> CountsInMemory:
    """Sort ``keys`` in place, and return each distinct key with how often it occurs."""
    keys.sort()
    firsts = np.flatnonzero(are_first(keys))
    return CountsInMemory(keys[firsts].astype(np.int64, copy=False), np.diff(firsts, append=len(keys)))


def are_first(keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for each of the sorted keys whether it differs from the one before."""
    found = np.empty(len(keys), bool)
    found[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=found[1:])
    return found


def _with_equals_added(keys: Keys, counts: NDArray[np.int64]) -> Part:
    firsts = np.flatnonzero(are_first(keys))
    return keys[firsts], np.add.reduceat(counts, firsts)


def insert_key(parts: Iterable[Part], key: int | None) -> Iterator[Part]:
    """Yield the parts with one more entry, of count 1, at its place; with None, as they are."""
    for keys, counts in parts:
        if key is not None and len(keys) and keys[-1] >= key:
            index = int(np.searchsorted(keys, key))
            keys, counts = np.insert(keys, index, key), np.insert(counts, index, 1)
            key = None
        yield keys, counts
    if key is not None:
        yield np.array([key]), np.array([1])


def add_equal_keys(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield each key of the parts once, with the sum of its counts; in the parts, equal keys follow each other."""
    last: Part = np.empty(0, _ENTRY), np.empty(0, _ENTRY)
    for keys, counts in parts:
        keys, counts = _with_equals_added(np.concatenate([last[0], keys]), np.concatenate([last[1], counts]))
        yield keys[:-1], counts[:-1]
        # The next part may begin with the last key.
        last = keys[-1:], counts[-1:]
    yield last


def merge(all_sorted: Sequence[SortedCounts], buffer_rows: int) -> Iterator[Part]:
    """Yield the union of sorted counts in rising order. Counts of equal keys are added.

    At most ``buffer_rows`` entries of each are in memory at once.
    """
    starts = [0] * len(all_sorted)
    while True:
        buffers = [
            sorted_counts.read(start, start + buffer_rows)
            for sorted_counts, start in zip(all_sorted, starts, strict=True)
        ]
        # A key above the last one of a buffer may occur again in what has not been read of it yet.
        unfinished = (
            int(keys[-1])
            for sorted_counts, start, (keys, _) in zip(all_sorted, starts, buffers, strict=True)
            if start + len(keys) < len(sorted_counts)
        )
        limit = min(unfinished, default=_LARGEST)
        parts = []
        for index, (keys, counts) in enumerate(buffers):
            if stop := int(np.searchsorted(keys, limit, side="right")):
                parts.append((keys[:stop], counts[:stop]))
                starts[index] += stop
        if not parts:
            return
        yield _union(parts)


def _union(parts: list[Part]) -> Part:
    """Return the union of parts. Counts of equal keys are added."""
    if len(parts) == 1:
        return parts[0]
    if sum(len(keys) for keys, _ in parts) < COMPILED_FROM_ROWS:
        keys, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")  # finds the sorted runs in its input and merges them
        return _with_equals_added(keys[order], counts[order])
    from seqlm.ngrams.counts.kernels import merge_two

    # Two by two, so that each step reads in order.
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [merge_two(*one, *other) for one, other in pairs] + parts[len(parts) // 2 * 2 :]
    return parts[0]
