"""Scores of models and their files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, remove_others, write_checksummed, write_npy
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log, clocked
from seqlm.heldout.scored_text import ScoredText
from seqlm.score.metrics import finite_bits, shown_bits, summarise, total_nll
from seqlm.score.model_info import ModelInfo

FORMAT = 5
_DESCRIPTION = "score.json"
TRAIN_SUBSET = "train_subset"
"""In a score's metrics: the part of train that the model was trained on, if that is not all of it."""
NUM_PARTNERS = 4
"""The best n-gram models on val are tried as partners of the best network: the best of them need not help most."""


@dataclass(frozen=True)
class Score:
    """A model's surprisals in nats on each split, one for each scored token but the first."""

    info: ModelInfo
    nll: Mapping[str, Nll]
    """Split -> surprisals, without the cost of spelling unknown tokens."""
    metrics: Mapping[str, dict[str, Any]]
    """Split, or :data:`TRAIN_SUBSET` -> what :func:`summarise` returns."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: diagnostics (:mod:`seqlm.score.diagnostics`), settings that were chosen on val."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.name


def make_score(
    info: ModelInfo, nll: Mapping[str, Nll], texts: Mapping[str, ScoredText], metadata: Mapping[str, Any] | None = None
) -> Score:
    """Return a score with the summary of its surprisals; ``texts`` are the scored texts of the splits."""
    metrics = {split: summarise(values, texts[split]) for split, values in nll.items()}
    return Score(info, nll, metrics, metadata or {})


def with_train_subset(score: Score, nll: Nll, text: ScoredText) -> Score:
    """Return a score with the summary of the surprisals on the part of train that the model was trained on."""
    return replace(score, metrics={TRAIN_SUBSET: summarise(nll, text), **score.metrics})


def if_better(dynamic: Score, static: Score, log: Log) -> Iterator[Score]:
    """Yield a dynamic score if it is better on val than the static one; otherwise say that it is left out."""
    if total_nll(dynamic.nll["val"]) < total_nll(static.nll["val"]):
        yield dynamic
    else:
        log(f"{dynamic.name}: left out, because {static.name} is as good on val")


def save_scores(folder: Path, scores: Iterable[Score], log: Log) -> dict[str, Mapping[str, dict[str, Any]]]:
    """Write each score to a subfolder with its model's name; remove all other subfolders. Return the metrics by name.

    A score is one array for each split, and ``score.json``. The bits on val are logged.
    """
    metrics = {}
    folder.mkdir(parents=True, exist_ok=True)
    for score, seconds in clocked(scores):
        save_score(folder / score.name, score)
        metrics[score.name] = score.metrics
        log(f"{score.name}: {shown_bits(score.metrics['val'])} on val, {seconds:.1f} s")
    remove_others(list(metrics), folder)
    return metrics


def drop_needless_train(folder: Path) -> None:
    """Remove the surprisals on train of n-gram models that no mixture may have; their sums stay in the metrics.

    Train is most of a text, and only mixtures need its surprisals: those of the best static models on val.
    """
    described = {path: load_description(path)[1] for path in sorted(folder.iterdir())}
    static = [path for path, value in described.items() if "train" in value["splits"]]
    for path in sorted(static, key=lambda path: finite_bits(described[path]["metrics"]["val"]))[NUM_PARTNERS:]:
        write_checksummed(path / _DESCRIPTION, described[path] | {"splits": ["val", "test"]})
        (path / "train.npy").unlink()


def val_bits(score: Score) -> float:
    """Return bits per character on val, infinity if the model gives a token no probability."""
    return finite_bits(score.metrics["val"])


def save_score(folder: Path, score: Score) -> None:
    """Write what :func:`load_score` reads."""
    for split, nll in score.nll.items():
        write_npy(folder / f"{split}.npy", nll)
    value = {"splits": list(score.nll), "model": asdict(score.info), "metrics": score.metrics}
    write_checksummed(folder / _DESCRIPTION, {"format": FORMAT, "metadata": score.metadata} | value)


def load_scores(folder: Path) -> list[Score]:
    """Return the scores in the subfolders of a folder, by name. Raises DataError if there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: run the stage that writes it")
    return [load_score(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def load_score(folder: Path) -> Score:
    """Return a score; its surprisals stay in their files until they are needed."""
    info, value = load_description(folder)
    nll = {split: np.asarray(read_npy(folder / f"{split}.npy", mmap=True)) for split in value["splits"]}
    return Score(info, nll, value["metrics"], value["metadata"])


def load_description(folder: Path) -> tuple[ModelInfo, dict[str, Any]]:
    """Return what the model of a stored score is, and all else that ``score.json`` holds."""
    value = read_checksummed(folder / _DESCRIPTION, FORMAT, "score again")
    return ModelInfo.from_json(value["model"]), value
