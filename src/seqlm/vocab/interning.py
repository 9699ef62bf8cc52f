"""Provisional ids of tokens, by first appearance: the first pass over a text, from which all else follows."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.text import NUM_CODE_POINTS

Ids = NDArray[np.uint32]


class Interner(ABC):
    """Gives each token an id at its first appearance."""

    def intern_all(self, blocks: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of the tokens of each block."""
        return map(self.intern, blocks)

    @abstractmethod
    def intern(self, block: str) -> Ids:
        """Return the ids of the tokens of a block of text that cuts no token; shape ``(num_tokens,)``."""

    @abstractmethod
    def tokens(self) -> list[str]:
        """Return the tokens seen so far, in the order of their ids."""


class CharInterner(Interner):
    """Interns characters."""

    def __init__(self) -> None:
        self._ids = np.full(NUM_CODE_POINTS, -1, np.int32)
        """The id of each code point, -1 if it was not seen yet."""
        self._seen: list[str] = []

    def intern(self, block: str) -> Ids:
        """Return the ids of the characters of a block."""
        codes = np.frombuffer(block.encode("utf-32-le"), np.uint32)
        ids: NDArray[np.int32] = self._ids[codes]
        if (is_new := ids < 0).any():
            new, positions = np.unique(codes[is_new], return_index=True)
            new = new[np.argsort(positions)]
            self._ids[new] = np.arange(len(self._seen), len(self._seen) + len(new))
            self._seen += map(chr, new.tolist())
            ids = self._ids[codes]
        return ids.view(np.uint32)

    def tokens(self) -> list[str]:
        """Return the characters seen so far."""
        return self._seen


class ProvisionalIds:
    """A stream of provisional ids in a file, and how often each occurs: a split before the vocabulary is known."""

    def __init__(self, path: Path, parts: Iterable[Ids]) -> None:
        """Write a stream that comes in parts to a file."""
        self._path = path
        self._parts: list[tuple[np.dtype[Any], int]] = []
        """Type and length of each part; the type is the smallest that holds its ids."""
        self.occurrences = np.zeros(0, np.int64)
        """How often each id occurs, up to the largest id seen here."""
        with path.open("wb") as file:
            for ids in parts:
                self._count(ids)
                dtype = np.min_scalar_type(max(len(self.occurrences) - 1, 0))
                file.write(ids.astype(dtype).data)
                self._parts.append((dtype, len(ids)))

    @property
    def num_tokens(self) -> int:
        """The length of the stream."""
        return sum(length for _, length in self._parts)

    def parts(self) -> Iterator[NDArray[Any]]:
        """Yield the ids in parts."""
        with self._path.open("rb") as file:
            for dtype, length in self._parts:
                yield np.fromfile(file, dtype, length)

    def _count(self, ids: Ids) -> None:
        num_seen = int(ids.max()) + 1 if len(ids) else 0
        self.occurrences.resize(max(num_seen, len(self.occurrences)), refcheck=False)
        np.add.at(self.occurrences, ids, 1)
