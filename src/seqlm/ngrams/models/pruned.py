"""Smaller Kneser-Ney models: of a lower order, or without rare n-grams, as ``lmplz --prune`` makes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.errors import ParamsError
from seqlm.core.files import read_checksummed, read_npy, write_checksummed, write_npy
from seqlm.core.settings import check
from seqlm.core.vocab_key import VocabKey, require_vocab
from seqlm.ngrams.backoff import BackoffTables
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs
from seqlm.ngrams.models.base import NGramModel, split_texts
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.settings import Order

_FORMAT = 1
_ADVICE = "prune again"
PRUNED = "pruned.json"
"""The description of a stored model."""
_Threshold = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, eq=False)
class PrunedKneserNey(BackoffTables, NGramModel):
    """A Kneser-Ney model without its rare n-grams, in single precision.

    The share of what is left out goes to the order below, so every distribution still sums to 1. Discounts, and how
    many tokens precede an n-gram, are those of all n-grams.
    """

    smoothing = "kneser-ney-pruned"

    prune: tuple[int, ...]
    """For each order, the n-grams that occur so often or less are left out."""

    @property
    def order(self) -> int:  # type: ignore[override]
        """The highest order that has n-grams left."""
        return self.counts.max_order

    def texts_probs(self, texts: Sequence[Ids]) -> list[Probs]:
        """Return p of tokens 2..N of each of some texts."""
        return split_texts(self.probs, texts)

    @classmethod
    def build(cls, counts: NgramCounts, settings: Mapping[str, Any]) -> Sequence[Self]:
        """Return the one model."""
        whole = KneserNey(counts, counts.max_order, unknown=settings["unknown"])
        return [cls.of(whole, settings["prune"])]

    @classmethod
    def of(cls, model: KneserNey, prune: Sequence[int]) -> Self:
        """Return a model without the n-grams of order n that occur ``prune[n - 1]`` times or less.

        The numbers never fall and begin with 0, so the beginning and the end of every n-gram that stays do so too.
        """
        tables = model.counts.tables[: model.order]
        arrays = [(tables[0].keys, tables[0].counts)]
        listed, backoffs = [model.unigram.astype(np.float32)], []
        kept_below, new_rows = np.arange(len(tables[0])), np.arange(len(tables[0]))
        for n, table in enumerate(tables[1:], start=2):
            is_kept = np.asarray(table.counts > prune[n - 1])
            if not is_kept.any():
                break
            prefixes, tokens = table.split()
            shares, weights = model.interpolation(n, slice(None), prefixes)[0], model.statistics[n - 1].backoffs
            dropped = np.bincount(prefixes[~is_kept], shares[~is_kept], len(weights))
            weights = np.minimum(weights + dropped, 1)
            kept, below = np.flatnonzero(is_kept), listed[-1].astype(np.float64)
            backed_off = weights[prefixes[kept]] * below[new_rows[table.suffixes[kept]]]
            arrays.append((new_rows[prefixes[kept]] * table.vocab_size + tokens[kept], table.counts[kept]))
            listed.append((shares[kept] + backed_off).astype(np.float32))
            backoffs.append(weights[kept_below].astype(np.float32))
            kept_below, new_rows = kept, np.cumsum(is_kept) - 1
        backoffs.append(np.ones(len(listed[-1]), np.float32))
        return cls(NgramCounts(arrays), listed, backoffs, tuple(prune))

    def save(self, folder: Path, vocab: VocabKey) -> None:
        """Write what :func:`load_pruned` needs: keys and probabilities, and weights below the highest order."""
        for n, table in enumerate(self.counts.tables, start=1):
            keys = table.keys.astype(np.min_scalar_type(int(table.keys.max(initial=0))))
            write_npy(folder / f"keys_{n}.npy", keys)
            write_npy(folder / f"probs_{n}.npy", np.asarray(self.listed[n - 1]))
            if n < self.order:
                write_npy(folder / f"weights_{n}.npy", np.asarray(self.backoffs[n - 1]))
        value = {"format": _FORMAT, "vocab": list(vocab), "order": self.order, "prune": list(self.prune)}
        write_checksummed(folder / PRUNED, value)


def load_pruned(folder: Path, vocab: VocabKey) -> PrunedKneserNey:
    """Return a model that was saved. Raises DataError if a file is missing, or if it has another vocabulary."""
    value = read_checksummed(folder / PRUNED, _FORMAT, _ADVICE)
    require_vocab(folder / PRUNED, value["vocab"], vocab, _ADVICE)

    def arrays(name: str, highest: int) -> list[NDArray[Any]]:
        return [read_npy(folder / f"{name}_{n}.npy", mmap=True) for n in range(1, highest + 1)]

    order = value["order"]
    keys = [each.view(np.int64) if each.dtype == np.uint64 else each for each in arrays("keys", order)]
    counts = NgramCounts((each, np.broadcast_to(np.uint8(1), each.shape)) for each in keys)
    weights = [*arrays("weights", order - 1), np.broadcast_to(np.float32(1), keys[-1].shape)]
    return PrunedKneserNey(counts, arrays("probs", order), weights, tuple(value["prune"]))


def smaller(model: KneserNey, prune: Sequence[int | str] = (), order: int | None = None) -> KneserNey | PrunedKneserNey:
    """Return a model of a lower order, or without rare n-grams.

    ``prune``: as for ``lmplz``, the n-grams of order n that occur ``prune[n - 1]`` times or less are left out, and the
    last number holds for higher orders too. Raises ParamsError if the numbers fall or do not begin with 0, or if the
    model has no such order.
    """
    order = model.order if order is None else check(order, "order", Order, source="prune")
    if order > model.order:
        raise ParamsError(f"order = {order}: the model has order {model.order}: choose a lower one")
    if order < model.order:
        model = KneserNey(model.counts, order, model.statistics, model.unknown)
    limits = check(list(prune) if isinstance(prune, Iterable) else prune, "prune", list[_Threshold], source="prune")
    if len(limits) > order:
        raise ParamsError(f"prune = {limits}: has more numbers than the {order} orders of the model")
    if limits != sorted(limits) or limits[:1] not in ([], [0]):
        raise ParamsError(f"prune = {limits}: must begin with 0 and never fall, as in [0, 0, 1]")
    limits += limits[-1:] * (order - len(limits))
    return PrunedKneserNey.of(model, limits) if any(limits) else model
