"""A model's score: its surprisals on the splits, and the figures that sum them up."""

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_npy, sha256_of_file, write_checksummed, write_npy
from seqlm.core.metrics import Nats, bits_per_character, perplexity
from seqlm.core.progress import Log, clocked
from seqlm.score.heldout.splits import TRAIN_SUBSET, Stream
from seqlm.vocab.corpus_building import SPLITS
from seqlm.vocab.kinds.registry import Kind

FORMAT = 2
_ADVICE = "score again"

BEST_OF_KIND = "strongest"
"""In what is known of an n-gram model: whether it is the one of its kind that is diagnosed, the best on val."""
DYNAMIC = "+dynamic"
"""What the name of a model ends in that learns on from the text it is scored on."""


@dataclass(frozen=True)
class Score:
    """A model's surprisals in nats on each split, one for each token but the first."""

    name: str
    kind: Kind
    nats: Mapping[str, Nats]
    """Split -> surprisals."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else is known of the model: see :mod:`seqlm.score.diagnostics`; measures of what it saw (FITTED)."""

    @property
    def adapts(self) -> bool:
        """Whether the model, or one that is mixed into it, learns on from the text that it is scored on."""
        return DYNAMIC in self.name

    def measures(self, streams: Mapping[str, Stream]) -> dict[str, dict[str, Any]]:
        """Return the measures of each split, and of what a run saw of train where it did not see all."""
        found = {split: measure(self.nats[split], streams[split]) for split in SPLITS if split in self.nats}
        return found | ({TRAIN_SUBSET: self.about[TRAIN_SUBSET]} if TRAIN_SUBSET in self.about else {})


def measure(nats: Nats, stream: Stream) -> dict[str, Any]:
    """Return nats per token, perplexity, bits per character, tokens, the share of unknown ones, that of the split.

    Perplexity is the model's own, over its own tokens. Bits per character charge unknown
    tokens besides, and divide by the characters that were scored, those after the first
    token. Infinite values are None, with the reason. Raises DataError where the surprisals
    are those of another text.
    """
    if len(nats) != max(len(stream.ids) - 1, 0):
        raise DataError(f"{len(nats)} surprisals for a text of {len(stream.ids)} tokens: {_ADVICE}")
    total, with_unknown_cost = float(nats.sum()), float(stream.with_unknown_cost(nats).sum())
    per_token = total / max(len(nats), 1)
    values = {
        "nats_per_token": per_token,
        "perplexity": perplexity(total, max(len(nats), 1)),
        "bits_per_character": bits_per_character(with_unknown_cost, max(stream.scored_chars, 1)),
    }
    found: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in values.items()}
    if None in found.values():
        found["reason"] = _why_infinite(nats, per_token)
    return found | {"tokens": len(nats), "unknown_share": stream.unknown_share, "scored_share": stream.share}


def _why_infinite(nats: Nats, per_token: float) -> str:
    if np.isnan(nats).any():
        return f"not a number: {int(np.isnan(nats).sum())} tokens have no probability"
    if missing := int(np.isinf(nats).sum()):
        return f"infinite: {missing} tokens have probability 0"
    return f"infinite: {per_token:.0f} nats a token give a perplexity beyond the largest number"


def shown_bits(measured: Mapping[str, Any]) -> str:
    """Return bits per character for a terminal."""
    bits = measured["bits_per_character"]
    return "infinite bits per character" if bits is None else f"{bits:.3f} bits per character"


def headline(measures: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures that experiments are compared by: bits per character and perplexity on val and test."""
    names = {"bits": "bits_per_character", "perplexity": "perplexity"}
    return {f"{split}_{short}": measures[split][key] for split in ("val", "test") for short, key in names.items()}


def save_score(folder: Path, score: Score) -> None:
    """Write a score: one array a split, and ``score.json`` with their SHA-256."""
    hashes = {}
    for split, nats in score.nats.items():
        path = folder / f"{split}.npy"
        write_npy(path, nats)
        hashes[split] = sha256_of_file(path)
    description = {"name": score.name, "kind": score.kind, "sha256": hashes, "about": dict(score.about)}
    write_checksummed(folder / "score.json", {"format": FORMAT} | description)


def save_all(scores: Iterable[Score], folder: Path, streams: Mapping[str, Stream], log: Log) -> None:
    """Write each score to a folder of its name in ``folder``, and say how good it is; no other stays there."""
    folder.mkdir(parents=True, exist_ok=True)
    others = {path for path in folder.iterdir() if path.is_dir()}
    for score, seconds in clocked(scores):
        save_score(folder / score.name, score)
        others.discard(folder / score.name)
        log(f"{score.name}: {shown_bits(measure(score.nats['val'], streams['val']))} on val, {seconds:.1f} s")
    for other in others:
        shutil.rmtree(other)


def load_score(folder: Path, name: str) -> Score:
    """Return the score of a model; its surprisals stay in their files.

    Raises DataError where a file is missing, changed, of another format, or of another model.
    """
    description = read_checksummed(folder / "score.json", FORMAT, _ADVICE)
    if description["name"] != name:
        raise DataError(f"{folder}: holds the score of {description['name']!r}, not of {name!r}: {_ADVICE}")
    paths = {}
    for split, digest in description["sha256"].items():
        paths[split] = folder / f"{split}.npy"
        if sha256_of_file(paths[split]) != digest:
            raise DataError(f"{paths[split]}: its content does not match the SHA-256 in score.json: {_ADVICE}")
    return Score(name, description["kind"], _StoredNats(paths), description["about"])


@dataclass(frozen=True)
class _StoredNats(Mapping[str, Nats]):
    """Surprisals in files: they are mapped when they are asked for, so that those of many models need no memory."""

    paths: dict[str, Path]

    def __getitem__(self, split: str) -> Nats:
        return np.asarray(read_npy(self.paths[split], mmap=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)
