"""Stored scores: a model's surprisals on each split, their summary, and what else is known of the model."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, sha256_of_file, write_checksummed, write_npy
from seqlm.core.metrics import Nats
from seqlm.core.progress import Log, clocked
from seqlm.heldout.scored_text import ScoredText
from seqlm.score.metrics import shown_bits, summarise, total_nats
from seqlm.score.model_info import ModelInfo

FORMAT = 3
_ADVICE = "score again"

TRAIN_SUBSET = "train_subset"
"""In a score's metrics: the part of train that the model was trained on, if that is not all of it."""


@dataclass(frozen=True)
class Score:
    """A model's surprisals in nats on each split, one for each scored token but the first."""

    info: ModelInfo
    nats: Mapping[str, Nats]
    """Split -> surprisals, without the cost of spelling unknown tokens."""
    metrics: Mapping[str, dict[str, Any]]
    """Split, or :data:`TRAIN_SUBSET` -> what :func:`~seqlm.score.metrics.summarise` returns."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: diagnostics (:mod:`seqlm.score.diagnostics`), settings that were chosen on val."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.name


def score_of(
    info: ModelInfo,
    nats: Mapping[str, Nats],
    texts: Mapping[str, ScoredText],
    metadata: Mapping[str, Any] | None = None,
) -> Score:
    """Return a score with the summary of its surprisals; ``texts`` are the scored texts of the splits."""
    metrics = {split: summarise(values, texts[split]) for split, values in nats.items()}
    return Score(info, nats, metrics, metadata or {})


def with_train_subset(score: Score, nats: Nats, text: ScoredText) -> Score:
    """Return a score with the summary of the surprisals on the part of train that the model was trained on."""
    return replace(score, metrics={TRAIN_SUBSET: summarise(nats, text), **score.metrics})


def if_better(dynamic: Score, static: Score, log: Log) -> Iterator[Score]:
    """Yield a dynamic score if it is better on val than the static one; otherwise say that it is left out."""
    if total_nats(dynamic.nats["val"]) < total_nats(static.nats["val"]):
        yield dynamic
    else:
        log(f"{dynamic.name}: left out, because {static.name} is as good on val")


def save_score(folder: Path, score: Score) -> None:
    """Write a score: one array for each split, and ``score.json`` with their SHA-256."""
    hashes = {}
    for split, nats in score.nats.items():
        path = folder / f"{split}.npy"
        write_npy(path, nats)
        hashes[split] = sha256_of_file(path)
    value = {"model": score.info.to_json(), "metrics": dict(score.metrics), "metadata": dict(score.metadata)}
    write_checksummed(folder / "score.json", {"format": FORMAT, "sha256": hashes} | value)


def save_scores(folder: Path, scores: Iterable[Score], log: Log) -> dict[str, Mapping[str, dict[str, Any]]]:
    """Write each score to a subfolder with its model's name; remove all other subfolders. Return the metrics by name.

    The bits on val are logged.
    """
    metrics = {}
    folder.mkdir(parents=True, exist_ok=True)
    others = {path for path in folder.iterdir() if path.is_dir()}
    for score, seconds in clocked(scores):
        save_score(folder / score.name, score)
        others.discard(folder / score.name)
        metrics[score.name] = score.metrics
        log(f"{score.name}: {shown_bits(score.metrics['val'])} on val, {seconds:.1f} s")
    for other in others:
        shutil.rmtree(other)
    return metrics


def load_scores(folder: Path) -> list[Score]:
    """Return the scores in the subfolders of a folder, by name. Raises DataError if there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: run the stage that writes it")
    return [load_score(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def load_description(folder: Path) -> tuple[ModelInfo, dict[str, Any]]:
    """Return what the model of a stored score is, and the score's metadata. Raises as :func:`load_score` does."""
    value = read_checksummed(folder / "score.json", FORMAT, _ADVICE)
    return ModelInfo.from_json(value["model"]), value["metadata"]


def load_score(folder: Path) -> Score:
    """Return a score; its surprisals stay in their files until they are needed.

    Raises DataError if a file is missing, changed, of another format, or in the folder of another model.
    """
    value = read_checksummed(folder / "score.json", FORMAT, _ADVICE)
    info = ModelInfo.from_json(value["model"])
    if info.name != folder.name:
        raise DataError(f"{folder}: holds the score of {info.name!r}: {_ADVICE}")
    paths = {}
    for split, digest in value["sha256"].items():
        paths[split] = folder / f"{split}.npy"
        if sha256_of_file(paths[split]) != digest:
            raise DataError(f"{paths[split]}: its content does not match the SHA-256 in score.json: {_ADVICE}")
    return Score(info, _StoredNats(paths), value["metrics"], value["metadata"])


@dataclass(frozen=True)
class _StoredNats(Mapping[str, Nats]):
    """Surprisals in files, which are mapped when they are asked for: those of many models need no memory."""

    paths: dict[str, Path]

    def __getitem__(self, split: str) -> Nats:
        return np.asarray(read_npy(self.paths[split], mmap=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)
