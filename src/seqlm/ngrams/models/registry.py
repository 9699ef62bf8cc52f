"""The list of smoothing methods, and their models on disk.

To add a method, write a subclass of :class:`~seqlm.ngrams.models.base.NGramModel` in a module of
its own, and append it to the list. The pipeline chooses its settings.

On disk the models of a text are its counts as arrays, and ``models.json`` with the settings.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, model_validator

from seqlm.core.errors import DataError
from seqlm.core.layout import MODEL_FORMAT
from seqlm.core.stored import Digests, Stored, VocabKey, read_array, require_vocab, write_array
from seqlm.ngrams.counts.count_tables import NgramCounts, Table
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
_MAX_COUNT = 1 << 53
"""The largest sum of counts: floats hold each integer up to here."""


class NgramsFile(Stored):
    """The content of ``models.json``."""

    version = MODEL_FORMAT
    advice = "count again"

    vocab: VocabKey
    starts: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """Of the n-grams of each order, the row of the one that begins the text."""
    settings: dict[str, dict[str, Any]]
    """Smoothing method -> its settings."""
    models: list[Any]
    """What each model is."""
    sha256: Digests
    """Of the arrays."""

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        for method in SMOOTHINGS:
            if method.smoothing in self.settings:
                TypeAdapter(method.schema).validate_python(self.settings[method.smoothing])
        if len(self.settings.get("laplace", {}).get("epsilons", ())) > len(self.starts):
            raise ValueError("laplace has epsilons of orders that were not counted")
        return self


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
    digests = {}
    for order, table in enumerate(counts.tables, start=1):
        for array, name in (table.keys, f"keys_{order}.npy"), (table.counts, f"counts_{order}.npy"):
            dtype = np.min_scalar_type(array.max(initial=0))
            digests[name] = write_array(folder / name, array, dtype)
    starts, models = list(map(int, counts.starts)), list(infos)
    NgramsFile(vocab=vocab, starts=starts, settings=settings, models=models, sha256=digests).write(
        folder / NGRAMS_FILE
    )


def load_counts(folder: Path, vocab: VocabKey) -> tuple[NgramCounts, dict[str, dict[str, Any]]]:
    """Return the counts, and the settings of each smoothing method, for :func:`build_models`.

    Raises DataError if a file is missing or was changed, if its numbers are no counts, or if the
    models have another vocabulary.
    """
    path = folder / NGRAMS_FILE
    description = NgramsFile.read(path)
    require_vocab(path, description.vocab, vocab, description.advice)

    def array(name: str) -> NDArray[np.integer]:
        """Return an array as it is stored, mapped into memory."""
        stored = read_array(folder / name, description.sha256.get(name, ""), description.advice)
        # Keys of 64 bits leave the sign free. Without one, arithmetic with other integers would use
        # floats.
        return stored.view(np.int64) if stored.dtype == np.uint64 else stored

    counts = NgramCounts((), description.starts)
    for order, start in enumerate(description.starts, start=1):
        counts.append(array(f"keys_{order}.npy"), array(f"counts_{order}.npy"))
        table = counts.table(order)
        if start >= len(table) or not _is_valid(table, vocab[0]):
            problem = f"the numbers of order {order} are no counts of this vocabulary"
            raise DataError(f"{folder}: {problem}: {description.advice}")
    return counts, description.settings


def _is_valid(table: Table, vocab_size: int) -> bool:
    """Return whether a table has a count for each key, and sorted keys of which all prefixes are in
    the table below, or at order 1 those of all tokens."""
    keys, num_keys = table.keys, vocab_size * len(table.below or (0,))
    if len(keys) != len(table.counts) or (table.below is None and len(keys) != vocab_size):
        return False

    def is_valid(rows: slice) -> bool:
        part, counts = keys[max(rows.start - 1, 0) : rows.stop], table.counts[rows]
        return bool((part[1:] > part[:-1]).all() and counts.min() >= 0)

    return (
        all(map(is_valid, table.blocks()))
        and (len(keys) == 0 or 0 <= keys[0] <= keys[-1] < num_keys)
        and table.counts.sum(dtype=np.float64) <= _MAX_COUNT
    )
