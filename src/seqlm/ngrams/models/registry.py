"""The list of smoothing methods, and their models on disk.

To add a method, write a subclass of :class:`~seqlm.ngrams.models.base.NGramModel` in a module of
its own, and append it to the list. The pipeline chooses its settings.

On disk the models of a text are its counts as arrays, and ``models.json`` with the settings.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import ParamsError
from seqlm.core.files import (
    VocabKey,
    read_checksummed,
    read_npy,
    require_vocab,
    write_checksummed,
    write_npy_blocks,
)
from seqlm.core.layout import MODEL_FORMAT
from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, NgramCounts
from seqlm.ngrams.models.base import NGramModel, Uniform
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace

SMOOTHINGS: tuple[type[NGramModel], ...] = (Uniform, Laplace, KneserNey)
"""In the order of the tables."""


def build_models(
    counts: NgramCounts, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, NGramModel]:
    """Return the models of all smoothing methods that have settings, by name; ``settings`` has them
    by method."""
    methods = [method for method in SMOOTHINGS if method.smoothing in settings]
    models = [
        model for method in methods for model in method.build(counts, settings[method.smoothing])
    ]
    return {model.name: model for model in models}


NGRAMS_FILE = "models.json"
"""The file that says what the models of a folder are."""
_ADVICE = "count again"


def save_models(
    folder: Path,
    counts: NgramCounts,
    settings: Mapping[str, Mapping[str, Any]],
    vocab: VocabKey,
    infos: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write what :func:`load_counts` needs: ``keys_N.npy`` and ``counts_N.npy`` for each order, and
    ``models.json``.

    ``settings`` has those of each smoothing method by its name; ``infos`` say what each model is.
    Each array takes the smallest integer type that holds it.
    """
    for order, table in enumerate(counts.tables, start=1):
        for name, array in (("keys", table.keys), ("counts", table.counts)):
            dtype = np.min_scalar_type(array.max(initial=0))
            blocks = (
                array[start : start + BLOCK_ROWS] for start in range(0, len(array), BLOCK_ROWS)
            )
            write_npy_blocks(folder / f"{name}_{order}.npy", dtype, len(array), blocks)
    description = {"vocab": list(vocab), "starts": counts.starts, "settings": settings}
    description |= {"format": MODEL_FORMAT, "models": list(infos)}
    write_checksummed(folder / NGRAMS_FILE, description)


def load_kneser_ney(folder: Path, vocab: VocabKey, order: int | None = None) -> KneserNey:
    """Return the Kneser-Ney model of an order, by default the highest that was counted.

    Raises ParamsError if the order was not counted, and as :func:`load_counts` does.
    """
    counts, settings = load_counts(folder, vocab)
    if order is not None and order > counts.max_order:
        raise ParamsError(
            f"order {order} was not counted: choose at most {counts.max_order}, "
            "or set ngrams.max_order"
        )
    return KneserNey(
        counts, order or counts.max_order, unknown=settings[KneserNey.smoothing]["unknown"]
    )


def read_infos(folder: Path) -> list[dict[str, Any]]:
    """Return what each model of a folder is, without reading the counts. Raises DataError."""
    infos: list[dict[str, Any]] = _read_description(folder)["models"]
    return infos


def _read_description(folder: Path) -> dict[str, Any]:
    return read_checksummed(folder / NGRAMS_FILE, MODEL_FORMAT, _ADVICE)


def load_counts(folder: Path, vocab: VocabKey) -> tuple[NgramCounts, dict[str, dict[str, Any]]]:
    """Return the counts, and the settings of each smoothing method, for :func:`build_models`.

    Raises DataError if a file is missing, or if the models have another vocabulary.
    """
    description = _read_description(folder)
    require_vocab(folder / NGRAMS_FILE, description["vocab"], vocab, _ADVICE)

    def array(name: str) -> NDArray[np.integer]:
        """Return an array as it is stored, mapped into memory."""
        stored = np.asarray(read_npy(folder / name, mmap=True))  # whose elements are read faster
        # Keys of 64 bits leave the sign free. Without one, arithmetic with other integers would use
        # floats.
        return stored.view(np.int64) if stored.dtype == np.uint64 else stored

    orders = range(1, len(description["starts"]) + 1)
    arrays = [(array(f"keys_{order}.npy"), array(f"counts_{order}.npy")) for order in orders]
    return NgramCounts(arrays, description["starts"]), description["settings"]
