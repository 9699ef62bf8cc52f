"""The scored text of all splits as files.

``heldout.json`` says which tokens are scored. ``ends_SPLIT.npy`` and ``costs_SPLIT.npy`` have one number for each of
them (see :class:`~seqlm.heldout.scored_text.ScoredText`), ``spelling_costs.npy`` one for each token that the vocabulary
lacks, and ``test_tokens.json`` the scored tokens of test.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_checksummed, read_json, read_npy, write_checksummed, write_json, write_npy
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.heldout.scored_text import ScoredText, Stream, Streams, stream_of
from seqlm.vocab.corpus import SPLITS, EncodedSplit, load_corpus, load_split
from seqlm.vocab.kinds import Kind

WARMUP = 512
"""Tokens that a model reads before a passage without being scored on them."""
FORMAT = 3
ADVICE = "run the heldout stage again"


def costs_in_split(split: EncodedSplit, start: int, stop: int, spelling: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the spelling cost of each unknown token from position ``start`` up to ``stop``, and 0 for all others.

    ``spelling`` has the costs of all tokens of the corpus that the vocabulary lacks.
    """
    costs: NDArray[np.float64] = np.concatenate([np.zeros(len(split.vocab)), spelling])[split.distinct_ids(start, stop)]
    return costs


@dataclass(frozen=True)
class Selection:
    """Which tokens of a split are scored; see :class:`~seqlm.heldout.scored_text.ScoredText`."""

    passages: list[list[int]]
    """For each passage the index of its first token, and that of the first token after it."""
    scored_chars: int
    unknown_share: float
    separator_nll: float
    share: float


@dataclass(frozen=True)
class Heldout:
    """The scored text of all splits, as tokens of one kind. Its arrays stay in their files until they are needed."""

    folder: Path
    max_chars: int
    """A longer split is scored on passages that together have about this many characters."""
    selections: dict[str, Selection]

    def text(self, split: str) -> ScoredText:
        """Return the scored text of a split without its tokens."""
        return ScoredText(**self._text(split))

    def texts(self) -> dict[str, ScoredText]:
        """Return the scored text of each split without its tokens."""
        return {split: self.text(split) for split in self.selections}

    def test_tokens(self) -> list[str]:
        """Return the scored tokens of test as they appear in the text, unknown ones included."""
        tokens: list[str] = read_json(self.folder / "test_tokens.json")
        return tokens

    def stream(self, split: str, ids: NDArray[Any]) -> Stream:
        """Return the scored text of a split with its tokens; ``ids`` are all tokens of the split."""
        passages = self.selections[split].passages
        read, is_scored, last = [], [], passages[0][0]
        for begin, end in passages:
            start = max(begin - WARMUP, last)
            read.append(ids[start:end])
            is_scored.append(np.arange(start, end) >= begin)
            last = end
        return Stream(**self._text(split), input_ids=np.concatenate(read), is_scored=np.concatenate(is_scored))

    def spelling_costs(self) -> Nll:
        """Return the cost of each token that the vocabulary lacks."""
        return self._array("spelling_costs")

    def _text(self, split: str) -> dict[str, Any]:
        figures = asdict(self.selections[split])
        del figures["passages"]
        return figures | {"ends": self._array(f"ends_{split}"), "unknown_costs": self._array(f"costs_{split}")}

    def _array(self, name: str) -> NDArray[Any]:
        return np.asarray(read_npy(self.folder / f"{name}.npy", mmap=True))


def save_heldout(
    folder: Path,
    max_chars: int,
    selections: Mapping[str, Selection],
    arrays: Mapping[str, NDArray[Any]],
    test_tokens: list[str],
) -> None:
    """Write what :func:`load_heldout` reads; ``arrays`` maps names of files, without ``.npy``, to arrays."""
    for name, array in arrays.items():
        write_npy(folder / f"{name}.npy", array)
    write_json(folder / "test_tokens.json", test_tokens)
    splits = {split: asdict(selection) for split, selection in selections.items()}
    write_checksummed(folder / "heldout.json", {"format": FORMAT, "max_chars": max_chars, "splits": splits})


def load_heldout(folder: Path) -> Heldout:
    """Return the scored text of all splits."""
    value = read_checksummed(folder / "heldout.json", FORMAT, ADVICE)
    selections = {split: Selection(**selection) for split, selection in value["splits"].items()}
    return Heldout(folder, value["max_chars"], selections)


def read_streams(layout: Layout, kind: Kind) -> Streams:
    """Return the scored text of each split as a stream of one kind of token."""
    heldout = load_heldout(layout.heldout(kind))
    return {split: heldout.stream(split, load_split(layout.corpus(kind), split, mmap=True)) for split in SPLITS}


def read_beginning_of_train(layout: Layout, kind: Kind, num_tokens: int) -> Stream | None:
    """Return the first ``num_tokens`` tokens of train as a stream; None if train has no more.

    The stream has no more tokens than a long split has scored characters.
    """
    heldout, corpus = load_heldout(layout.heldout(kind)), load_corpus(layout.corpus(kind), kind)
    split = corpus.splits["train"]
    if num_tokens >= len(split):
        return None
    num_tokens = min(num_tokens, heldout.max_chars)
    lengths = split.lengths(0, num_tokens)
    chars = int(lengths[1:].sum())
    if not corpus.vocab.token_kind.is_lossless:  # the blanks between words count as characters too: an estimate
        chars = round(corpus.vocab.num_chars["train"] * (num_tokens - 1) / (len(split) - 1))
    costs = costs_in_split(split, 0, num_tokens, heldout.spelling_costs())
    return stream_of(np.asarray(split.ids[:num_tokens]), costs, np.cumsum(lengths), chars)
