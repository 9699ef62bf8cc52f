"""n-gram models on disk: the counts as arrays, the settings as JSON with the arrays' SHA-256."""

import zipfile
from pathlib import Path

import numpy as np

from seqlm.errors import DataError
from seqlm.files import read_sealed, replacing, sha256_of_file, write_sealed
from seqlm.ngrams.counts import Counts, Table
from seqlm.ngrams.models import Backoff, NGramModel, build_models

FORMAT = 1
_ARRAYS = ("keys", "counts", "suffixes")


def save_models(folder: Path, counts: Counts, epsilons: tuple[float, ...], backoff: Backoff) -> None:
    """Write ``counts.npz`` and ``models.json``: all that :func:`load_models` needs."""
    arrays = {
        f"{name}_{order}": getattr(counts.table(order), name)
        for order in range(1, counts.max_order + 1)
        for name in _ARRAYS
    }
    path = folder / "counts.npz"
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    write_sealed(
        folder / "models.json",
        {
            "format": FORMAT,
            "vocab_size": counts.vocab_size,
            "starts": counts.starts,
            "epsilons": list(epsilons),
            "backoff": backoff,
            "sha256": sha256_of_file(path),
        },
    )


def load_models(folder: Path, vocab_size: int) -> dict[str, NGramModel]:
    """Return the models of a folder by name, the weakest first.

    Raises DataError where a file is missing, changed, of another format, or of another
    vocabulary.
    """
    path, description_path = folder / "counts.npz", folder / "models.json"
    description = read_sealed(description_path, FORMAT, "count again")
    if description["vocab_size"] != vocab_size:
        raise DataError(
            f"{description_path}: counted over {description['vocab_size']} tokens, the vocabulary has {vocab_size}: "
            "count again"
        )
    if sha256_of_file(path) != description["sha256"]:
        raise DataError(f"{path}: its content does not match the SHA-256 in models.json: count again")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tables = [
                Table(**{name: arrays[f"{name}_{order}"] for name in _ARRAYS})
                for order in range(1, len(description["starts"]) + 1)
            ]
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"{path}: not the counts of this pipeline: count again") from error
    return build_models(
        Counts(vocab_size, tables, description["starts"]), tuple(description["epsilons"]), description["backoff"]
    )
