"""Scores of models: what a model is, its surprisals on each split, the figures that sum them up, and their files."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, remove_others, require_sha256, write_checksummed, write_npy
from seqlm.core.metrics import Nats, bits_per_character, perplexity
from seqlm.core.progress import Log, clocked
from seqlm.heldout.scored_text import ScoredText
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

FORMAT = 4
_ADVICE = "score again"

TRAIN_SUBSET = "train_subset"
"""In a score's metrics: the part of train that the model was trained on, if that is not all of it."""
DYNAMIC = "+dynamic"
"""Appended to the names of dynamic models."""

Family = Literal["ngram", "network", "mixture"]


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that tables, figures and sentences about it depend on: its name is never parsed."""

    name: str
    family: Family
    token: Kind
    """Kind of token that the model predicts."""
    train_chars: int
    """Characters of train that the model was trained on; the largest number among the members of a mixture."""
    counted_token: Kind | None = None
    """N-gram models: kind of token whose n-grams are counted. It differs from ``token`` for a model over words that is
    read as a model over characters."""
    smoothing: str | None = None
    """N-gram models: smoothing method."""
    order: int | None = None
    """N-gram models: order, in tokens of kind ``counted_token``; 0 for the uniform distribution."""
    network: str | None = None
    """Networks: kind of network, such as lstm."""
    epoch: Literal["last", "best"] | None = None
    """Networks: whether the weights are those of the last epoch, or those that were best on val."""
    dynamic: bool = False
    """Whether the model, or a member of the mixture, keeps learning from the text that it predicts."""
    chosen_on_val: bool = False
    """Whether settings, weights or the epoch of the model were chosen on val, so that it looks better there."""
    members: tuple[str, ...] = ()
    """Mixtures: the names of the members. Dynamic models: the name of the static model."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the model whose fields a JSON file holds."""
        return cls(**{**value, "members": tuple(value["members"])})

    def as_dynamic(self) -> Self:
        """Return the description of the same model if it keeps learning from the text that it predicts."""
        return replace(self, name=f"{self.name}{DYNAMIC}", dynamic=True, chosen_on_val=True, members=(self.name,))

    @property
    def counts_predicted_token(self) -> bool:
        """Whether this is an n-gram model over the tokens that it predicts."""
        return self.family == "ngram" and self.counted_token == self.token


def describe_ngram(
    smoothing: str, order: int, vocab: Vocab, num_tokens: int | None = None, *, chosen_on_val: bool = False
) -> ModelInfo:
    """Return the description of an n-gram model over the tokens of a vocabulary.

    ``num_tokens``: the first tokens of train that it counts, if these are not all.
    """
    name = "-".join([vocab.kind, smoothing, *([str(order)] if order else [])])
    return ModelInfo(
        name if num_tokens is None else f"{name}@{num_tokens}",
        "ngram",
        vocab.kind,
        beginning_chars(vocab, num_tokens),
        counted_token=vocab.kind,
        smoothing=smoothing,
        order=order,
        chosen_on_val=chosen_on_val,
    )


def beginning_chars(vocab: Vocab, num_tokens: int | None) -> int:
    """Return about how many characters the first tokens of train have, or all of it if ``num_tokens`` is None."""
    num_chars, all_tokens = vocab.num_chars["train"], vocab.splits["train"].num_tokens
    return round(num_chars * min((num_tokens or all_tokens) / all_tokens, 1.0))


def summarise(nats: Nats, text: ScoredText) -> dict[str, Any]:
    """Return nats per token, perplexity, bits per character, number of tokens, and shares of a scored text.

    Perplexity is per token of the model's own kind. Bits per character add the cost of spelling unknown tokens and
    divide by the scored characters. ``unknown_bits`` are those spent on unknown tokens: on predicting that one comes,
    and on spelling it. ``separator_bits``, which are not included, are what the separators between words would cost a
    model over words. Infinite values are None, with a reason. Raises DataError if the surprisals belong to another
    text.
    """
    with_spelling, chars = text.with_unknown_cost(nats), max(text.scored_chars, 1)
    total, total_with_spelling = float(nats.sum()), float(with_spelling.sum())
    per_token = total / max(len(nats), 1)
    values = {
        "nats_per_token": per_token,
        "perplexity": perplexity(total, max(len(nats), 1)),
        "bits_per_character": bits_per_character(total_with_spelling, chars),
        "unknown_bits": bits_per_character(float(with_spelling[text.unknown_costs[1:] > 0].sum()), chars),
    }
    found: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in values.items()}
    if None in found.values():
        found["reason"] = _why_infinite(nats, per_token)
    return found | {
        "separator_bits": bits_per_character(text.separator_nats, chars),
        "tokens": len(nats),
        "unknown_share": text.unknown_share,
        "scored_share": text.share,
    }


def _why_infinite(nats: Nats, per_token: float) -> str:
    if np.isnan(nats).any():
        return f"not a number: {int(np.isnan(nats).sum())} tokens have no probability"
    if missing := int(np.isinf(nats).sum()):
        return f"infinite: {missing} tokens have probability 0"
    return f"infinite: {per_token:.0f} nats per token give a perplexity beyond the largest number"


def total_nats(nats: Nats) -> float:
    """Return the sum of surprisals as a number to compare: infinity if one of them is not a number."""
    total = float(nats.sum())
    return math.inf if math.isnan(total) else total


def shown_bits(metrics: Mapping[str, Any]) -> str:
    """Return bits per character for a terminal."""
    bits = metrics["bits_per_character"]
    return "infinite bits per character" if bits is None else f"{bits:.3f} bits per character"


def finite_bits(metrics: Mapping[str, Any]) -> float:
    """Return bits per character as a number to compare: infinity if the model gives a token no probability."""
    bits = metrics["bits_per_character"]
    return math.inf if bits is None else float(bits)


def headline(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures that experiments are compared by: bits per character and perplexity on val and test."""
    names = {"bits": "bits_per_character", "perplexity": "perplexity"}
    return {f"{split}_{short}": metrics[split][key] for split in ("val", "test") for short, key in names.items()}


@dataclass(frozen=True)
class Score:
    """A model's surprisals in nats on each split, one for each scored token but the first."""

    info: ModelInfo
    nats: Mapping[str, Nats]
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
    hashes = {split: write_npy(folder / f"{split}.npy", nats) for split, nats in score.nats.items()}
    value = {"model": asdict(score.info), "metrics": dict(score.metrics), "metadata": dict(score.metadata)}
    write_checksummed(folder / "score.json", {"format": FORMAT, "sha256": hashes} | value)


def save_scores(folder: Path, scores: Iterable[Score], log: Log) -> dict[str, Mapping[str, dict[str, Any]]]:
    """Write each score to a subfolder with its model's name; remove all other subfolders. Return the metrics by name.

    The bits on val are logged.
    """
    metrics = {}
    folder.mkdir(parents=True, exist_ok=True)
    for score, seconds in clocked(scores):
        save_score(folder / score.name, score)
        metrics[score.name] = score.metrics
        log(f"{score.name}: {shown_bits(score.metrics['val'])} on val, {seconds:.1f} s")
    remove_others(list(metrics), folder)
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
    for split, digest in value["sha256"].items():
        require_sha256(folder / f"{split}.npy", digest, "score.json", _ADVICE)
    nats = {split: np.asarray(read_npy(folder / f"{split}.npy", mmap=True)) for split in value["sha256"]}
    return Score(info, nats, value["metrics"], value["metadata"])
