"""The tokens that a vocabulary lacks: what stands in the text where the id is that of ``<unk>``.

Beside the ids of each split lies ``unknown_SPLIT.npy``, which has a number for each of its
unknown tokens, in their order; ``unknown.json`` names the tokens by these numbers, in the
order of their first appearance in train, val, test. With them the ids say all that the
text says, and no stage behind ``vocab`` reads the text again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, sha256_of_file, write_blocks, write_checksummed
from seqlm.vocab.interning import ProvisionalIds

FORMAT = 1
_ADVICE = "run the vocab stage again"
_DTYPE = np.dtype(np.uint32)


@dataclass(frozen=True)
class UnknownTokens:
    """The tokens of a corpus that its vocabulary lacks, and where they stand."""

    tokens: list[str]
    numbers: dict[str, NDArray[np.uint32]]
    """Split -> for each unknown token of it, in their order, its place in ``tokens``; mapped from files."""
    first_line: int
    """Tokens of the text's first line: the encoded splits show no line ends."""


def write_unknown(
    folder: Path, met: Sequence[str], ids: NDArray[np.integer], drafts: Mapping[str, ProvisionalIds], first_line: int
) -> None:
    """Write what :func:`read_unknown` reads.

    ``met`` names the tokens of all splits, ``drafts`` has the splits in their numbers, and
    ``ids`` says which of them are unknown: those of id 0.
    """
    is_unknown = ids == 0
    places = (np.cumsum(is_unknown) - 1).astype(_DTYPE)
    hashes = {}
    for split, draft in drafts.items():
        path = _path(folder, split)
        size = int(draft.occurrences[is_unknown[: len(draft.occurrences)]].sum())
        write_blocks(path, _DTYPE, size, _unknown_parts(draft, is_unknown, places) if size else [])
        hashes[split] = sha256_of_file(path)
    tokens = [met[number] for number in np.flatnonzero(is_unknown).tolist()]
    value = {"format": FORMAT, "first_line": first_line, "sha256": hashes, "tokens": tokens}
    write_checksummed(folder / "unknown.json", value)


def _unknown_parts(
    draft: ProvisionalIds, is_unknown: NDArray[np.bool_], places: NDArray[np.uint32]
) -> Iterator[NDArray[np.uint32]]:
    for part in draft.parts():
        yield places[part[is_unknown[part]]]


def read_unknown(folder: Path) -> UnknownTokens:
    """Return the unknown tokens of an encoded corpus.

    Raises DataError where a file is missing, changed, or of another format.
    """
    value = read_checksummed(folder / "unknown.json", FORMAT, _ADVICE)
    numbers = {split: _checked(_path(folder, split), digest) for split, digest in value["sha256"].items()}
    return UnknownTokens(value["tokens"], numbers, value["first_line"])


def _checked(path: Path, digest: str) -> NDArray[Any]:
    if sha256_of_file(path) != digest:
        raise DataError(f"{path}: its content does not match the SHA-256 in unknown.json: {_ADVICE}")
    return read_npy(path, mmap=True)


def _path(folder: Path, split: str) -> Path:
    return folder / f"unknown_{split}.npy"
