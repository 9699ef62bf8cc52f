"""Reading a whole text, across the borders of its splits, with a vocabulary of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.count_tables import Counts
from seqlm.ngrams.counting import Chunking, count_ngrams
from seqlm.vocab.streams import token_blocks
from seqlm.vocab.vocabulary import UNKNOWN, Kind

_MAX_ORDER = 3
_BLOCK = 1 << 20


@dataclass(frozen=True)
class WholeText:
    """The token ids of a whole text, its vocabulary by frequency, and its counts."""

    kind: Kind
    tokens: list[str]
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``, mapped from a file."""
    counts: Counts


def read_whole(paths: Sequence[Path], kind: Kind, line_separator: str, chunking: Chunking) -> WholeText:
    """Return all splits of a text as one, joined by the line separator where they are characters.

    The vocabulary is ``<unk>`` and the tokens by falling frequency, ties by first
    appearance. The ids lie in a file in the folder of ``chunking``.
    """

    def blocks() -> Iterator[Sequence[str]]:
        for index, path in enumerate(paths):
            if index and kind == "char" and line_separator:
                yield line_separator
            yield from token_blocks(path, kind, line_separator)

    # One pass over the text numbers the tokens by first appearance; then they are numbered anew.
    numbers, unsorted_path = _Numbers(), chunking.folder / f"{kind}.unsorted"
    with unsorted_path.open("wb") as file:
        for tokens_of_block in blocks():
            file.write(np.fromiter(map(numbers.__getitem__, tokens_of_block), np.uint32, len(tokens_of_block)).data)
    occurrences = np.zeros(len(numbers), np.int64)
    for block in _read_blocks(unsorted_path):
        occurrences += np.bincount(block, minlength=len(numbers))
    ranked = np.argsort(-occurrences, kind="stable")
    dtype = np.min_scalar_type(len(numbers))
    new_ids = np.empty(len(numbers), dtype)
    new_ids[ranked] = np.arange(1, len(numbers) + 1)
    path = chunking.folder / f"{kind}.npy"
    write_blocks(path, dtype, int(occurrences.sum()), (new_ids[block] for block in _read_blocks(unsorted_path)))
    unsorted_path.unlink()
    names = list(numbers)
    tokens, ids = [UNKNOWN, *(names[number] for number in ranked)], read_npy(path, mmap=True)
    return WholeText(kind, tokens, ids, count_ngrams(ids, len(tokens), min(_MAX_ORDER, len(ids)), chunking))


class _Numbers(dict[str, int]):
    """Numbers what it is asked for by first appearance."""

    def __missing__(self, token: str) -> int:
        self[token] = len(self)
        return self[token]


def _read_blocks(path: Path) -> Iterator[NDArray[np.uint32]]:
    """Yield a file's numbers in blocks; it is read and not mapped, so that its pages take no memory of this process."""
    with path.open("rb") as file:
        while len(block := np.fromfile(file, np.uint32, _BLOCK)):
            yield block
