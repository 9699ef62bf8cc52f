"""The surprisals of every model on every split, the figures that sum them up, and their files.

The bits of a model are computed once, here: score.json has them for each stored model. The stage
``evaluate`` repeats them for all models in metrics.json, with those of mixtures; its table.csv and
bits.json are selections, for people and for ``dvc metrics``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import remove_others
from seqlm.core.metrics import Nll, perplexity
from seqlm.core.progress import Log, timed
from seqlm.core.stored import read_array, write_array
from seqlm.models.info import Metadata, ModelFile, ModelInfo, read_description
from seqlm.models.language_model import LanguageModel
from seqlm.models.scored_text import Ids, Stream, measure
from seqlm.pipeline.score.heldout import Heldout
from seqlm.vocab.corpus import SPLITS

_DESCRIPTION = "score.json"
HELD_OUT = ("val", "test")
TRAIN_SUBSET = "train_subset"
"""In the metrics: the part of train that the model was trained on, if that is not all of it."""
NUM_POSITIONS = 128
"""Positions after the beginning of a text for which a model's perplexity is reported."""
MAX_WINDOWS = 512
"""Windows of the text over which it is measured."""


@dataclass(frozen=True)
class Scores:
    """A model's surprisals on some splits in nats, one for each scored token, and the figures that
    sum them up."""

    info: ModelInfo
    nll: Mapping[str, Nll]
    """Split -> surprisals, without the cost of spelling unknown tokens."""
    metrics: Mapping[str, dict[str, Any]]
    """Split, or :data:`TRAIN_SUBSET` -> what :func:`~seqlm.models.scored_text.measure` returns."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: settings that were chosen on val, and how perplexity depends on
    context."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.name

    def bits(self, split: str) -> float:
        """Return bits per character: infinity if the model gives a token no probability, NaN if
        the split was not scored."""
        if split not in self.metrics:
            return math.nan
        value = self.metrics[split]["bits_per_character"]
        return math.inf if value is None else float(value)


def make_scores(
    info: ModelInfo,
    nll: Mapping[str, Nll],
    texts: Mapping[str, Stream],
    metadata: Mapping[str, Any] | None = None,
) -> Scores:
    """Return surprisals with the figures that sum them up; ``texts`` are the scored texts of the
    splits."""
    return Scores(
        info,
        nll,
        {split: measure(values, texts[split]) for split, values in nll.items()},
        metadata or {},
    )


def val_bits(scores: Scores) -> float:
    """Return bits per character on val, by which models are chosen."""
    return scores.bits("val")


def score_model(model: LanguageModel, heldout: Heldout) -> Scores:
    """Return the scores of a model on all splits, or on val and test only if it keeps learning.

    Static models over characters also show how perplexity depends on context, unless they read
    words as characters, which takes long.
    """
    info, streams = model.info, heldout.streams
    splits = HELD_OUT if info.dynamic else SPLITS
    scores = make_scores(
        info, {split: streams[split].scored_nll(model.token_nll) for split in splits}, streams
    )
    if info.train_tokens is not None:
        head = heldout.head("train", info.train_tokens)
        subset = measure(head.scored_nll(model.token_nll), head)
        scores = replace(scores, metrics={TRAIN_SUBSET: subset, **scores.metrics})
    if info.token == "char" and info.counted_token != "word" and not info.dynamic:
        positions = perplexity_by_position(model, streams["test"].ids)
        scores = replace(scores, metadata={"positions": positions})
    return scores


def perplexity_by_position(model: LanguageModel, ids: Ids) -> list[float | None]:
    """Return perplexity by the number of tokens of context, from one token on; None if it is
    infinite.

    Evenly spaced windows of the text are each read as a text of their own.
    """
    length = min(NUM_POSITIONS + 1, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, MAX_WINDOWS).astype(np.int64))
    windows = np.asarray(ids)[starts[:, None] + np.arange(length)].astype(np.int64)
    values = [
        perplexity(float(total), len(starts))
        for total in np.stack(model.batch_nll(list(windows))).sum(0)
    ]
    return [value if math.isfinite(value) else None for value in values]


def format_bits(bits: float) -> str:
    """Return bits per character for a terminal."""
    return f"{bits:.3f} bits per character"


def save_scores_folder(folder: Path, scores: Iterable[Scores], log: Log) -> None:
    """Write the scores of each model to a subfolder with its name; remove everything else in the
    folder.

    The scores of a model are one array for each split, and ``score.json``. The bits on val are
    logged.
    """
    names = []
    folder.mkdir(parents=True, exist_ok=True)
    for score, seconds in timed(scores):
        save_scores(folder / score.name, score)
        names.append(score.name)
        log(f"{score.name}: {format_bits(val_bits(score))} on the validation set, {seconds:.1f} s")
    remove_others(names, folder)


def save_scores(folder: Path, scores: Scores) -> None:
    """Write what :func:`load_scores` reads."""
    sha256 = {split: write_array(folder / f"{split}.npy", nll) for split, nll in scores.nll.items()}
    metadata = Metadata(metrics=scores.metrics, **scores.metadata, sha256=sha256)
    ModelFile(model=scores.info, metadata=metadata).write(folder / _DESCRIPTION)


def load_scores_folder(folder: Path) -> list[Scores]:
    """Return the scores in the subfolders of a folder, by name. Raises DataError if there is no
    such folder."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: run the stage that writes it")
    return [load_scores(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def load_scores(folder: Path) -> Scores:
    """Return the scores of a model; its surprisals stay in their files until they are needed."""
    description = read_description(folder / _DESCRIPTION, ModelFile)
    metadata = description.metadata.model_dump(exclude_unset=True)
    nll = {
        split: read_array(folder / f"{split}.npy", sha256, description.advice, np.float64)
        for split, sha256 in metadata.pop("sha256").items()
    }
    return Scores(description.model, nll, metadata.pop("metrics"), metadata)
