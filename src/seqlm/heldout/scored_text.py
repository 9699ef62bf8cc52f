"""The text of a split that models are scored on, as tokens of one kind, in memory and as files.

Tokens 2 to N are scored, each given all tokens before it. The first token costs nothing, and neither it nor the text
before it counts as scored characters. A long split is scored in passages. Before each passage after the first, a model
reads some tokens without being scored on them.

``heldout.json`` says which tokens are scored, and holds the SHA-256 of the other files: ``ends_SPLIT.npy`` and
``costs_SPLIT.npy`` have one number for each scored token (see :class:`ScoredText`), ``spelling_costs.npy`` one for each
token that the vocabulary lacks, and ``test_tokens.json`` the scored tokens of test. Characters also have
``folds.json``, which calibrates intervals.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import (
    read_checksummed,
    read_json,
    read_npy,
    require_sha256,
    sha256_of_file,
    write_checksummed,
    write_json,
    write_npy,
)
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.vocab.corpus import SPLITS, load_corpus, load_split
from seqlm.vocab.kinds import Kind

Ids = NDArray[np.integer]

NUM_BLOCKS = 50
"""Parts that a scored text is cut into; a text that is scored in passages has as many of them."""
_MIN_BLOCK_CHARS = 20


@dataclass(frozen=True, kw_only=True)
class ScoredText:
    """A scored text of N tokens, without the tokens: all that is needed to sum up their surprisals."""

    scored_chars: int
    """Characters after the first token, with lines joined. Bits per character divide by this number."""
    unknown_costs: Nats
    """What it costs to spell each token that the vocabulary lacks, 0 for the others; shape ``(N,)``."""
    ends: NDArray[np.int64]
    """The number of characters in all tokens up to and including each token; shape ``(N,)``."""
    unknown_share: float
    """Share of the scored tokens that the vocabulary lacks."""
    separator_nats: float = 0.0
    """What the separators between words would cost, which models over words need not predict; 0 for other tokens."""
    share: float = 1.0
    """The share of its split that this text is, in characters."""

    @property
    def num_scored(self) -> int:
        """The number of scored tokens: all but the first."""
        return max(len(self.ends) - 1, 0)

    def with_unknown_cost(self, nats: Nats) -> Nats:
        """Return the surprisals of tokens 2 to N with the cost of spelling the unknown ones.

        Raises DataError if the surprisals belong to another text.
        """
        if len(nats) != self.num_scored:
            raise DataError(f"{len(nats):,} surprisals for a text of {self.num_scored:,} scored tokens: score again")
        return nats + self.unknown_costs[1:]

    @property
    def num_blocks(self) -> int:
        """The number of blocks that the text is cut into, fewer for a short text."""
        return min(NUM_BLOCKS, self.scored_chars // _MIN_BLOCK_CHARS)

    def block_bits(self, nats: Nats, num_blocks: int) -> NDArray[np.float64]:
        """Return bits per character on each of some blocks of equally many characters; shape ``(num_blocks,)``.

        The bits of a token are spread over its characters, so blocks begin at the same characters for all kinds of
        tokens. Separators between words are shared equally by the words. Raises DataError as above.
        """
        lengths = np.diff(self.ends)
        ends = np.cumsum(lengths + (self.scored_chars - lengths.sum()) / max(self.num_scored, 1))
        bits = np.cumsum(self.with_unknown_cost(nats)) / math.log(2)
        cuts = np.linspace(0, ends[-1], num_blocks + 1)
        return np.asarray(np.diff(np.interp(cuts, [0, *ends], [0, *bits])) * num_blocks / self.scored_chars)


@dataclass(frozen=True, kw_only=True)
class Stream(ScoredText):
    """A scored text with its tokens."""

    input_ids: Ids
    """What a model reads: the scored tokens and, before each passage after the first, its warm-up."""
    is_scored: NDArray[np.bool_]
    """For each token of ``input_ids``, whether it is scored."""

    @cached_property
    def ids(self) -> Ids:
        """The scored tokens; shape ``(N,)``."""
        return self.input_ids[self.is_scored]

    def nats(self, score: Callable[[Ids], Nats]) -> Nats:
        """Return the surprisals of tokens 2 to N; ``score`` gives those of any tokens that are read as one text."""
        return score(self.input_ids)[self.is_scored[1:]]

    def beginning(self, num_tokens: int) -> "Stream":
        """Return the first tokens, to be read as one text; the stream itself if it has no more."""
        if num_tokens >= len(self.ids):
            return self
        # Exact if every token is one character; otherwise an estimate.
        chars = round(self.scored_chars * (num_tokens - 1) / (len(self.ids) - 1))
        return stream_of(self.ids[:num_tokens], self.unknown_costs[:num_tokens], self.ends[:num_tokens], chars)


Streams = dict[str, Stream]
"""Split -> its scored text."""


def stream_of(ids: Ids, unknown_costs: Nats, ends: NDArray[np.int64], scored_chars: int) -> Stream:
    """Return tokens that are read as one text as a stream."""
    return Stream(
        input_ids=ids, is_scored=np.ones(len(ids), bool), scored_chars=scored_chars, unknown_costs=unknown_costs,
        ends=ends, unknown_share=unknown_share(ids),
    )  # fmt: skip


def unknown_share(ids: Ids) -> float:
    """Return the share of tokens 2 to N that the vocabulary lacks."""
    return float(np.mean(np.asarray(ids[1:]) == 0)) if len(ids) > 1 else 0.0


WARMUP = 512
"""Tokens that a model reads before a passage without being scored on them."""
FORMAT = 2
_ADVICE = "run the heldout stage again"


@dataclass(frozen=True)
class Selection:
    """Which tokens of a split are scored; see :class:`ScoredText`."""

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
        passages = self.selections[split].passages
        read, is_scored, last = [], [], passages[0][0]
        for begin, end in passages:
            start = max(begin - WARMUP, last)
            read.append(ids[start:end])
            is_scored.append(np.arange(start, end) >= begin)
            last = end
        return Stream(**self._text(split), input_ids=np.concatenate(read), is_scored=np.concatenate(is_scored))

    def spelling_costs(self) -> Nats:
        """Return the cost of each token that the vocabulary lacks."""
        return self._array("spelling_costs.npy")

    def _text(self, split: str) -> dict[str, Any]:
        figures = asdict(self.selections[split])
        del figures["passages"]
        arrays = {"ends": self._array(f"ends_{split}.npy"), "unknown_costs": self._array(f"costs_{split}.npy")}
        return figures | arrays

    def _array(self, name: str) -> NDArray[Any]:
        return np.asarray(read_npy(self._checked(name), mmap=True))

    def _checked(self, name: str) -> Path:
        require_sha256(self.folder / name, self._hashes[name], "heldout.json", _ADVICE)
        return self.folder / name


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
    test_tokens: list[str],
) -> None:
    """Write what :func:`load_heldout` reads; ``arrays`` maps names of files to arrays."""
    hashes = {name: write_npy(folder / name, array) for name, array in arrays.items()}
    write_json(folder / "test_tokens.json", test_tokens)
    value = {
        "format": FORMAT,
        "kind": kind,
        "max_chars": max_chars,
        "splits": {split: asdict(selection) for split, selection in selections.items()},
        "sha256": hashes | {"test_tokens.json": sha256_of_file(folder / "test_tokens.json")},
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
    ids, costs = np.asarray(split.ids[:num_tokens]), np.zeros(num_tokens)
    unknown = np.flatnonzero(ids == 0)
    costs[unknown] = heldout.spelling_costs()[split.unknown[: len(unknown)]]
    return stream_of(ids, costs, np.cumsum(lengths), chars)
