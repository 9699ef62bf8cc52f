"""Numbering the tokens of a text by first appearance: the first pass over it, from which all else follows.

A word is looked up in a table of those met before. Python's own table does that for texts
of ordinary size; compiled loops (:mod:`seqlm.vocab.hashing`) do it faster, but take two
seconds to compile, and are taken for large texts.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlm.core.text import words

Numbers = NDArray[np.uint32]

COMPILED_FROM_BYTES = 50_000_000
"""Texts of at least this size are numbered by compiled loops: what these save exceeds their compilation."""
_CODE_POINTS = 0x110000


class Interner(Protocol):
    """The tokens met so far, in the order of their first appearance."""

    def number(self, block: str) -> Numbers:
        """Return the numbers of the tokens of a block of text, which cuts no token; shape ``(tokens,)``."""
        ...

    def names(self) -> list[str]:
        """Return the tokens met so far; token n has number n."""
        ...


class CharInterner:
    """Numbers characters."""

    def __init__(self) -> None:
        self._numbers = np.full(_CODE_POINTS, -1, np.int32)
        """The number of each code point, -1 for those not met yet."""
        self._met: list[str] = []

    def number(self, block: str) -> Numbers:
        """Return the numbers of the characters of a block."""
        codes: NDArray[Any] = (
            np.frombuffer(block.encode("ascii"), np.uint8)
            if block.isascii()
            else np.frombuffer(block.encode("utf-32-le"), np.uint32)
        )
        numbers: NDArray[np.int32] = self._numbers[codes]
        if (is_new := numbers < 0).any():
            new, places = np.unique(codes[is_new], return_index=True)
            new = new[np.argsort(places)]
            self._numbers[new] = np.arange(len(self._met), len(self._met) + len(new))
            self._met += map(chr, new.tolist())
            numbers = self._numbers[codes]
        return numbers.view(np.uint32)

    def names(self) -> list[str]:
        """Return the characters met so far."""
        return self._met


class WordInterner:
    """Numbers words with Python's own table."""

    def __init__(self) -> None:
        self._numbers = _ByFirstAppearance()

    def number(self, block: str) -> Numbers:
        """Return the numbers of the words of a block."""
        found = words(block.replace("\n", " "))
        return np.fromiter(map(self._numbers.__getitem__, found), np.uint32, len(found))

    def names(self) -> list[str]:
        """Return the words met so far."""
        return list(self._numbers)


class _ByFirstAppearance(dict[str, int]):
    """Numbers what it is asked for."""

    def __missing__(self, token: str) -> int:
        self[token] = len(self)
        return self[token]


class ProvisionalIds:
    """A stream of numbers in a file, and how often each occurs: what a split is until the vocabulary is known."""

    def __init__(self, path: Path, parts: Iterable[Numbers]) -> None:
        """Write a stream that comes in parts to a file."""
        self._path = path
        self._parts: list[tuple[np.dtype[Any], int]] = []
        """Type and length of each part: the smallest type that holds its numbers."""
        self.occurrences = np.zeros(0, np.int64)
        """For each number met here, up to the largest, how often it occurs."""
        with path.open("wb") as file:
            for numbers in parts:
                self._count(numbers)
                dtype = np.min_scalar_type(max(len(self.occurrences) - 1, 0))
                file.write(numbers.astype(dtype).data)
                self._parts.append((dtype, len(numbers)))

    @property
    def num_tokens(self) -> int:
        """The length of the stream."""
        return sum(length for _, length in self._parts)

    def parts(self) -> Iterator[NDArray[Any]]:
        """Yield the numbers in parts."""
        with self._path.open("rb") as file:
            for dtype, length in self._parts:
                yield np.fromfile(file, dtype, length)

    def _count(self, numbers: Numbers) -> None:
        counts = np.bincount(numbers)
        if len(counts) > len(self.occurrences):
            self.occurrences, counts = counts, self.occurrences
        self.occurrences[: len(counts)] += counts
