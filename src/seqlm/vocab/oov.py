"""The tokens that a vocabulary lacks: the text at the positions whose id is that of ``<unk>``.

Beside the ids of each split, ``unknown_SPLIT.npy`` has a number for each of its unknown
tokens, in their order. ``unknown.json`` names the tokens by these numbers, in the order of
their first appearance in train, val, test. Together with the ids they contain the whole
text, and no stage after ``vocab`` reads the text again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import (
    read_checksummed,
    read_npy,
    require_sha256,
    sha256_of_file,
    write_blocks,
    write_checksummed,
)
from seqlm.vocab.interning import ProvisionalIds

FORMAT = 2
_ADVICE = "run the vocab stage again"


@dataclass(frozen=True)
class UnknownTokens:
    """The tokens of a corpus that its vocabulary lacks, and which of them each split has."""

    tokens: list[str]
    indices: dict[str, NDArray[np.uint32]]
    """Split -> for each of its unknown tokens, in their order, the index in ``tokens``; mapped from files."""
    first_line: int
    """Tokens of the text's first line: the encoded splits have no line ends."""


def write_unknown(
    folder: Path, seen: Sequence[str], ids: NDArray[np.integer], splits: Mapping[str, ProvisionalIds], first_line: int
) -> None:
    """Write the files that :func:`read_unknown` reads.

    ``seen`` are the tokens of all splits by provisional id, and ``ids`` their ids in the
    vocabulary, 0 for the unknown ones.
    """
    is_unknown = ids == 0
    indices = (np.cumsum(is_unknown) - 1).astype(np.uint32)
    hashes = {}
    for split, stream in splits.items():
        path = _path(folder, split)
        size = int(stream.occurrences[is_unknown[: len(stream.occurrences)]].sum())
        parts = stream.parts() if size else ()
        write_blocks(path, indices.dtype, size, (indices[part[is_unknown[part]]] for part in parts))
        hashes[split] = sha256_of_file(path)
    tokens = [seen[index] for index in np.flatnonzero(is_unknown).tolist()]
    value = {"format": FORMAT, "first_line": first_line, "sha256": hashes, "tokens": tokens}
    write_checksummed(folder / "unknown.json", value)


def read_unknown(folder: Path) -> UnknownTokens:
    """Return the unknown tokens of an encoded corpus.

    Raises DataError if a file is missing, changed, or of another format.
    """
    value = read_checksummed(folder / "unknown.json", FORMAT, _ADVICE)
    for split, digest in value["sha256"].items():
        require_sha256(_path(folder, split), digest, "unknown.json", _ADVICE)
    indices = {split: read_npy(_path(folder, split), mmap=True) for split in value["sha256"]}
    return UnknownTokens(value["tokens"], indices, value["first_line"])


def _path(folder: Path, split: str) -> Path:
    return folder / f"unknown_{split}.npy"
