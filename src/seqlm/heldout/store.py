"""Which text of each split is scored, as files for one kind of token.

``heldout.json`` says which tokens are scored, and holds the SHA-256 of the other files: ``ends_SPLIT.npy`` and
``costs_SPLIT.npy`` have one number for each scored token (see :class:`~seqlm.heldout.scored_text.ScoredText`),
``spelling_costs.npy`` one for each token that the vocabulary lacks, and ``test_tokens.json`` the scored tokens of test.
Characters also have ``folds.json``, which calibrates intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import (
    read_checksummed,
    read_json,
    read_npy,
    sha256_of_file,
    write_checksummed,
    write_json,
    write_npy,
)
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import ScoredText, Stream, Streams, stream_of
from seqlm.vocab.corpus import SPLITS, EncodedSplit, load_corpus, load_split
from seqlm.vocab.kinds import Kind

WARMUP = 512
"""Tokens that a model reads before a passage without being scored on them."""
FORMAT = 2
_ADVICE = "run the heldout stage again"


@dataclass(frozen=True)
class Selection:
    """Which tokens of a split are scored; see :class:`~seqlm.heldout.scored_text.ScoredText`."""

    passages: list[list[int]]
    """For each passage the index of its first token, and that of the first token after it."""
    scored_chars: int
    unknown_share: float
    separator_nats: float
    share: float


@dataclass(frozen=True)
class Heldout:
    """The scored text of all splits, as tokens of one kind. Its arrays stay in their files until they are needed."""

    folder: Path
    max_chars: int
    """A longer split is scored on passages that together have about this many characters."""
    selections: dict[str, Selection]
    _hashes: dict[str, str]

    def text(self, split: str) -> ScoredText:
        """Return the scored text of a split without its tokens."""
        return ScoredText(**self._text(split))

    def texts(self) -> dict[str, ScoredText]:
        """Return the scored text of each split without its tokens."""
        return {split: self.text(split) for split in self.selections}

    def test_tokens(self) -> list[str]:
        """Return the scored tokens of test as they appear in the text, unknown ones included."""
        tokens: list[str] = read_json(self._checked("test_tokens.json"))
        return tokens

    def stream(self, split: str, ids: NDArray[Any]) -> Stream:
        """Return the scored text of a split with its tokens; ``ids`` are all tokens of the split."""
        passages, last = self.selections[split].passages, 0
        scored: list[NDArray[Any]] = []
        read, is_scored = [], []
        for begin, end in passages:
            start = max(begin - WARMUP, last) if scored else begin
            scored.append(ids[begin:end])
            read.append(ids[start:end])
            is_scored.append(np.arange(start, end) >= begin)
            last = end
        if len(passages) == 1:
            return Stream(**self._text(split), ids=scored[0])
        return Stream(
            **self._text(split),
            ids=np.concatenate(scored),
            read=np.concatenate(read),
            is_scored=np.concatenate(is_scored),
        )

    def costs_of_first(self, split: EncodedSplit, num_tokens: int) -> Nats:
        """Return what it costs to spell each of the first tokens of a split, 0 for those in the vocabulary."""
        costs, places = np.zeros(num_tokens), np.flatnonzero(np.asarray(split.ids[:num_tokens]) == 0)
        costs[places] = self._array("spelling_costs")[split.unknown[: len(places)]]
        return costs

    def _text(self, split: str) -> dict[str, Any]:
        selection = self.selections[split]
        return {
            "scored_chars": selection.scored_chars,
            "unknown_share": selection.unknown_share,
            "separator_nats": selection.separator_nats,
            "share": selection.share,
            "ends": self._array(f"ends_{split}"),
            "unknown_costs": self._array(f"costs_{split}"),
        }

    def _array(self, name: str) -> NDArray[Any]:
        return np.asarray(read_npy(self._checked(f"{name}.npy"), mmap=True))

    def _checked(self, name: str) -> Path:
        path = self.folder / name
        if sha256_of_file(path) != self._hashes[name]:
            raise DataError(f"{path}: its content does not match the SHA-256 in heldout.json: {_ADVICE}")
        return path


@dataclass(frozen=True)
class Folds:
    """How much the bits per character of two reference models differ between parts of one text."""

    bits: list[list[float]]
    """For each model, its bits on each of some parts of train, trained on the rest; each part is as long as test."""
    test_blocks: list[list[float]]
    """For each model, its bits on each block of test, trained on all of train."""

    def save(self, folder: Path) -> None:
        """Write what :meth:`load` reads."""
        write_checksummed(folder / "folds.json", {"format": FORMAT} | asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Folds | None":
        """Return what was stored; None if the text was too short or too long to be cross-validated."""
        value = read_checksummed(folder / "folds.json", FORMAT, _ADVICE)
        return cls(value["bits"], value["test_blocks"]) if value["bits"] else None


def save_heldout(
    folder: Path,
    kind: Kind,
    max_chars: int,
    selections: Mapping[str, Selection],
    arrays: Mapping[str, NDArray[Any]],
    test_tokens: Sequence[str],
) -> None:
    """Write what :func:`load_heldout` reads; ``arrays`` maps names of files, without ``.npy``, to arrays."""
    for name, array in arrays.items():
        write_npy(folder / f"{name}.npy", array)
    write_json(folder / "test_tokens.json", list(test_tokens))
    names = [*(f"{name}.npy" for name in arrays), "test_tokens.json"]
    value = {
        "format": FORMAT,
        "kind": kind,
        "max_chars": max_chars,
        "splits": {split: asdict(selection) for split, selection in selections.items()},
        "sha256": {name: sha256_of_file(folder / name) for name in names},
    }
    write_checksummed(folder / "heldout.json", value)


def load_heldout(folder: Path, kind: Kind) -> Heldout:
    """Return the scored text of all splits. Raises DataError if a file is missing, changed, or of another kind."""
    value = read_checksummed(folder / "heldout.json", FORMAT, _ADVICE)
    if value["kind"] != kind:
        raise DataError(f"{folder}: holds tokens of kind {value['kind']}, not {kind}: {_ADVICE}")
    selections = {split: Selection(**selection) for split, selection in value["splits"].items()}
    return Heldout(folder, value["max_chars"], selections, value["sha256"])


def read_streams(layout: Layout, kind: Kind) -> Streams:
    """Return the scored text of each split as a stream of one kind of token."""
    heldout = load_heldout(layout.heldout(kind), kind)
    return {split: heldout.stream(split, load_split(layout.corpus(kind), split, mmap=True)) for split in SPLITS}


def read_beginning_of_train(layout: Layout, kind: Kind, num_tokens: int) -> Stream | None:
    """Return the first ``num_tokens`` tokens of train as a stream; None if train has no more.

    The stream has no more tokens than a long split has scored characters.
    """
    heldout, corpus = load_heldout(layout.heldout(kind), kind), load_corpus(layout.corpus(kind), kind)
    split = corpus.splits["train"]
    if num_tokens >= len(split):
        return None
    num_tokens = min(num_tokens, heldout.max_chars)
    lengths = split.lengths(0, num_tokens)
    chars = int(lengths[1:].sum())
    if not corpus.vocab.token_kind.is_lossless:  # the blanks between words count as characters too: an estimate
        chars = round(corpus.vocab.num_chars["train"] * (num_tokens - 1) / (len(split) - 1))
    return stream_of(split.ids[:num_tokens], heldout.costs_of_first(split, num_tokens), np.cumsum(lengths), chars)
