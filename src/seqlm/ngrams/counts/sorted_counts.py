"""Sorted keys with their counts, in memory or in files, and merging them.

Counting one chunk of a text gives sorted counts: each key once, rising, with its count. Files are read part by part,
never mapped, so that memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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

    def remove(self) -> None:
        """Do nothing: there is no file."""


@dataclass(frozen=True)
class CountsInFiles:
    """Sorted counts in two files of 64-bit integers: ``STEM.keys`` and ``STEM.counts``."""

    stem: Path
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self, start: int, stop: int) -> Part:
        """Return the keys at positions ``start`` to ``stop`` or the end, and their counts."""
        offset = start * _ENTRY.itemsize
        keys, counts = (np.fromfile(path, _ENTRY, stop - start, offset=offset) for path in _paths(self.stem))
        return keys, counts

    def mapped(self) -> Part:
        """Return all of them, mapped into memory; there must be some."""
        keys, counts = (np.memmap(path, _ENTRY, mode="r") for path in _paths(self.stem))
        return keys, counts

    def remove(self) -> None:
        """Delete the files."""
        for path in _paths(self.stem):
            path.unlink()


SortedCounts = CountsInMemory | CountsInFiles


def _paths(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(stem.name + ".keys"), stem.with_name(stem.name + ".counts")


def write_run(stem: Path, parts: Iterable[Part]) -> CountsInFiles:
    """Write parts, which follow each other in rising order, as one file of keys and one of counts."""
    length = 0
    keys_path, counts_path = _paths(stem)
    with keys_path.open("wb") as keys_file, counts_path.open("wb") as counts_file:
        for keys, counts in parts:
            keys_file.write(np.ascontiguousarray(keys, _ENTRY).data)
            counts_file.write(np.ascontiguousarray(counts, _ENTRY).data)
            length += len(keys)
    return CountsInFiles(stem, length)


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


def insert_key(parts: Iterable[Part], key: int) -> Iterator[Part]:
    """Yield the parts with one more entry, of count 1, at its place."""
    is_due = True
    for keys, counts in parts:
        if is_due and len(keys) and keys[-1] >= key:
            index, is_due = int(np.searchsorted(keys, key)), False
            keys, counts = np.insert(keys, index, key), np.insert(counts, index, 1)
        yield keys, counts
    if is_due:
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
