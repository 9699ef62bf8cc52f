"""The surprisals of every model on every split, and their files."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, remove_others, write_checksummed, write_npy
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log, clocked
from seqlm.models.info import DESCRIPTION_FORMAT, ModelInfo
from seqlm.models.language_model import LanguageModel
from seqlm.models.scored_text import ScoredText, Stream, Streams, finite_bits, measure
from seqlm.vocab.kinds import Kind

_DESCRIPTION = "score.json"
_ADVICE = "score again"
TRAIN_SUBSET = "train_subset"
"""In the metrics: the part of train that the model was trained on, if that is not all of it."""
NUM_PARTNERS = 4
"""The best n-gram models on val are tried as partners of the best network: the best of them need not help most."""


@dataclass(frozen=True)
class Scores:
    """A model's surprisals on each split in nats, one for each scored token, and the figures that sum them up."""

    info: ModelInfo
    nll: Mapping[str, Nll]
    """Split -> surprisals, without the cost of spelling unknown tokens."""
    metrics: Mapping[str, dict[str, Any]]
    """Split, or :data:`TRAIN_SUBSET` -> what :func:`~seqlm.models.scored_text.measure` returns."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: settings that were chosen on val, and how perplexity depends on context."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.name


def make_scores(
    info: ModelInfo, nll: Mapping[str, Nll], texts: Mapping[str, ScoredText], metadata: Mapping[str, Any] | None = None
) -> Scores:
    """Return surprisals with the figures that sum them up; ``texts`` are the scored texts of the splits."""
    return Scores(info, nll, {split: measure(values, texts[split]) for split, values in nll.items()}, metadata or {})


def score_model(
    model: LanguageModel,
    streams: Streams,
    splits: Sequence[str] = ("train", "val", "test"),
    subset: Stream | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Scores:
    """Return the scores of a model on some splits; ``subset``: what it was trained on, if not all of train."""
    scores = make_scores(
        model.info, {split: streams[split].nll(model.token_nll) for split in splits}, streams, metadata
    )
    if subset is None:
        return scores
    seen = {TRAIN_SUBSET: measure(subset.nll(model.token_nll), subset)}
    return Scores(scores.info, scores.nll, seen | dict(scores.metrics), scores.metadata)


def total_nll(nll: Nll) -> float:
    """Return the sum of surprisals as a number to compare: infinity if one of them is not a number."""
    total = float(nll.sum())
    return math.inf if math.isnan(total) else total


def shown_bits(metrics: Mapping[str, Any]) -> str:
    """Return bits per character for a terminal."""
    bits = metrics["bits_per_character"]
    return "infinite bits per character" if bits is None else f"{bits:.3f} bits per character"


def val_bits(scores: Scores) -> float:
    """Return bits per character on val, infinity if the model gives a token no probability."""
    return finite_bits(scores.metrics["val"])


def if_better(dynamic: Scores, static: Scores, log: Log) -> Iterator[Scores]:
    """Yield the scores of a dynamic model if it is better on val than the static one; otherwise say that it is not."""
    if total_nll(dynamic.nll["val"]) < total_nll(static.nll["val"]):
        yield dynamic
    else:
        log(f"{dynamic.name}: left out, because {static.name} is as good on val")


def save_all(folder: Path, scores: Iterable[Scores], log: Log) -> None:
    """Write the scores of each model to a subfolder with its name; remove all other subfolders.

    The scores of a model are one array for each split, and ``score.json``. The bits on val are logged.
    """
    names = []
    folder.mkdir(parents=True, exist_ok=True)
    for each, seconds in clocked(scores):
        save_scores(folder / each.name, each)
        names.append(each.name)
        log(f"{each.name}: {shown_bits(each.metrics['val'])} on val, {seconds:.1f} s")
    remove_others(names, folder)


def drop_needless_train(folder: Path, kind: Kind) -> None:
    """Remove the surprisals on train of n-gram models over ``kind`` that no mixture may have, but not their sums.

    Train is most of a text, and only mixtures need its surprisals: those of the best static models on val.
    """
    described = {path: _read(path) for path in sorted(folder.iterdir())}
    static = [
        path for path, value in described.items() if "train" in value["splits"] and value["model"]["token"] == kind
    ]
    for path in sorted(static, key=lambda path: finite_bits(described[path]["metrics"]["val"]))[NUM_PARTNERS:]:
        write_checksummed(path / _DESCRIPTION, described[path] | {"splits": ["val", "test"]})
        (path / "train.npy").unlink()


def save_scores(folder: Path, scores: Scores) -> None:
    """Write what :func:`load_scores` reads."""
    for split, nll in scores.nll.items():
        write_npy(folder / f"{split}.npy", nll)
    value = {"splits": list(scores.nll), "model": asdict(scores.info), "metrics": scores.metrics}
    write_checksummed(folder / _DESCRIPTION, {"format": DESCRIPTION_FORMAT, "metadata": scores.metadata} | value)


def load_all(folder: Path) -> list[Scores]:
    """Return the scores in the subfolders of a folder, by name. Raises DataError if there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: run the stage that writes it")
    return [load_scores(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def load_scores(folder: Path) -> Scores:
    """Return the scores of a model; its surprisals stay in their files until they are needed."""
    value = _read(folder)
    nll = {split: np.asarray(read_npy(folder / f"{split}.npy", mmap=True)) for split in value["splits"]}
    return Scores(ModelInfo.from_json(value["model"]), nll, value["metrics"], value["metadata"])


def _read(folder: Path) -> dict[str, Any]:
    return read_checksummed(folder / _DESCRIPTION, DESCRIPTION_FORMAT, _ADVICE)
