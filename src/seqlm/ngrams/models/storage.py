"""n-gram models on disk: the counts as arrays, the settings as JSON with the arrays' SHA-256."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, sha256_of_file, write_blocks, write_checksummed
from seqlm.ngrams.counts.count_tables import Counts, Table
from seqlm.ngrams.models.smoothing import Backoff, KneserNey, NGramModel, build_models

FORMAT = 2
_ARRAYS = ("keys", "counts")
_BLOCK = 1 << 20


def save_models(folder: Path, counts: Counts, epsilons: tuple[float, ...], backoff: Backoff) -> None:
    """Write all that :func:`load_models` needs: ``keys_N.npy`` and ``counts_N.npy`` for each order, ``models.json``.

    Each array takes the smallest integer type that holds it.
    """
    hashes = {}
    for order in range(1, counts.max_order + 1):
        for name in _ARRAYS:
            array = getattr(counts.table(order), name)
            path = folder / f"{name}_{order}.npy"
            write_blocks(path, np.min_scalar_type(array.max(initial=0)), len(array), _blocks(array))
            hashes[path.name] = sha256_of_file(path)
    write_checksummed(
        folder / "models.json",
        {
            "format": FORMAT,
            "vocab_size": counts.vocab_size,
            "starts": counts.starts,
            "epsilons": list(epsilons),
            "backoff": backoff,
            "sha256": hashes,
        },
    )


def _blocks(array: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
    for start in range(0, len(array), _BLOCK):
        yield array[start : start + _BLOCK]


def load_models(folder: Path, vocab_size: int) -> dict[str, NGramModel]:
    """Return the models of a folder by name, the weakest first.

    Raises DataError where a file is missing, changed, of another format, or of another
    vocabulary.
    """
    counts, description = _load(folder, vocab_size)
    return build_models(counts, tuple(description["epsilons"]), description["backoff"])


def load_kneser_ney(folder: Path, vocab_size: int) -> KneserNey:
    """Return the Kneser-Ney model of the highest order that a folder counts; raises as :func:`load_models` does."""
    counts, _ = _load(folder, vocab_size)
    return KneserNey(counts, counts.max_order)


def _load(folder: Path, vocab_size: int) -> tuple[Counts, dict[str, Any]]:
    description_path = folder / "models.json"
    description = read_checksummed(description_path, FORMAT, "count again")
    if description["vocab_size"] != vocab_size:
        raise DataError(
            f"{description_path}: counted over {description['vocab_size']} tokens, the vocabulary has {vocab_size}: "
            "count again"
        )
    tables = []
    for order in range(1, len(description["starts"]) + 1):
        tables.append(Table(**{name: _checked(folder / f"{name}_{order}.npy", description) for name in _ARRAYS}))
    return Counts(vocab_size, tables, description["starts"]), description


def _checked(path: Path, description: dict[str, dict[str, str]]) -> NDArray[np.integer]:
    """Return an array as it is stored, mapped into memory."""
    if sha256_of_file(path) != description["sha256"].get(path.name):
        raise DataError(f"{path}: its content does not match the SHA-256 in models.json: count again")
    array = read_npy(path, mmap=True)
    # Keys of 64 bits have a free sign; without one, arithmetic with other rows would be done in floats.
    return array.view(np.int64) if array.dtype == np.uint64 else array
