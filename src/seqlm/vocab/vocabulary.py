"""Vocabularies of one kind of token, and the choice of their tokens (section 8.2).

A vocabulary is built only from the training split. ``<unk>`` is token 0; then
come the tokens of the text by falling frequency, ties by first appearance.
Subwords are all here, including those that do not occur.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import VocabKey, read_checksummed, read_text, write_checksummed, write_text
from seqlm.vocab.kinds import Kind, SubwordTokenizer, TokenKind, token_kind
from seqlm.vocab.separators import BLANKS, Separators

UNKNOWN = "<unk>"
FORMAT = 6
TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True)
class SplitInfo:
    """Size of one encoded split; ``num_chars`` counts its lines joined by the line separator."""

    num_tokens: int
    num_chars: int
    num_unknown: int
    sha256: str

    @property
    def unknown_share(self) -> float:
        """Share of the split's tokens that the vocabulary lacks."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(frozen=True)
class Vocab:
    """Tokens and their indices.

    ``counts[i]`` is how often ``tokens[i]`` occurs in the training split; that of
    ``<unk>`` is the number of training tokens that ``min_freq`` left out.
    """

    kind: Kind
    tokens: list[str]
    counts: list[int]
    line_separator: str
    splits: dict[str, SplitInfo]
    tokenizer: SubwordTokenizer | None = field(default=None, repr=False, compare=False)
    """Splits text into tokens, if these are subwords."""
    normalise: str = "none"
    """How its text was cleaned (``preprocess.normalise``)."""
    separators: Separators | None = None
    """The probabilities of what separates words in train, if these are the tokens and if train is
    known."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._indices

    @property
    def blank(self) -> str:
        """The character that a text without a context is read after: a space, else a line end, else
        none."""
        return next((blank for blank in BLANKS if blank in self), "")

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    @cached_property
    def key(self) -> VocabKey:
        """What models that were trained with this vocabulary must be opened with."""
        return len(self.tokens), hashlib.sha256(json.dumps(self.tokens).encode()).hexdigest()

    @property
    def token_kind(self) -> TokenKind:
        """The kind of token."""
        return token_kind(self.kind)

    @property
    def num_chars(self) -> dict[str, int]:
        """Characters of each split, lines joined: the same for all kinds of tokens."""
        return {name: split.num_chars for name, split in self.splits.items()}

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return the indices of ``tokens``, 0 for those the vocabulary lacks; shape
        ``(len(tokens),)``."""
        return np.fromiter(map(self._indices.get, tokens, repeat(0)), np.int64, len(tokens))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of ``ids``."""
        return [self.tokens[index] for index in ids]

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a cleaned text of any number of lines."""
        tokens = self.token_kind.pretokenize(text, self.line_separator)
        return self.tokenizer.tokenize(tokens) if self.tokenizer else list(tokens)

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of ``tokens``, in which spaces separate words."""
        return self.token_kind.join(tokens)

    def lengths(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of characters of each token; shape ``(len(tokens),)``."""
        return np.fromiter(map(self.token_kind.length, tokens), np.int64, len(tokens))

    @classmethod
    def load(cls, path: Path, kind: str | None = None) -> "Vocab":
        """Read a ``vocab.json``. Raises DataError if it is broken, of another format, or of another
        ``kind``."""
        value = read_checksummed(path, FORMAT, "run the vocab stage again")
        if kind is not None and value["kind"] != kind:
            raise DataError(
                f"{path}: holds tokens of kind {value['kind']}, not {kind}: run the vocab stage "
                "again"
            )
        del value["format"]
        value["splits"] = {name: SplitInfo(**info) for name, info in value["splits"].items()}
        value["separators"] = Separators(*value["separators"]) if value["separators"] else None
        if not token_kind(value["kind"]).has_unknown:
            value["tokenizer"] = SubwordTokenizer(read_text(path.with_name(TOKENIZER_FILE)))
        return cls(**value)

    def save(self, path: Path) -> None:
        """Write this vocabulary as JSON with a checksum, and its tokenizer beside it."""
        splits = {name: asdict(info) for name, info in self.splits.items()}
        value: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "line_separator": self.line_separator,
        }
        value |= {"normalise": self.normalise, "separators": self.separators, "splits": splits}
        value |= {"tokens": self.tokens, "counts": self.counts}
        if self.tokenizer is not None:
            write_text(path.with_name(TOKENIZER_FILE), self.tokenizer.description)
        write_checksummed(path, value)


Parts = list[NDArray[np.integer]]
"""A text as ids of its tokens, in parts of small types."""


def choose_tokens(
    kind: TokenKind, seen: Sequence[str], train: Parts, min_freq: int
) -> tuple[list[str], list[int], NDArray[np.integer]]:
    """Choose the tokens of a vocabulary.

    Returns them, their counts, and for each token of ``seen`` its index in the vocabulary, 0 for
    those that it lacks.

    ``seen`` are the tokens of all splits in the order of their first appearance, and ``train`` is
    the training split as indices of these. ``min_freq``: tokens that occur less often are left out
    and count as ``<unk>``; all subwords are kept, even those that do not occur in train. Raises
    ParamsError if none is left.
    """
    occurrences = sum(
        (np.bincount(part, minlength=len(seen)) for part in train), np.zeros(len(seen), np.int64)
    )
    # A stable sort keeps tokens of equal frequency in the order of their first appearance.
    ranked = np.argsort(-occurrences, kind="stable")
    ranked = ranked[occurrences[ranked] >= (max(min_freq, 1) if kind.has_unknown else 0)]
    if UNKNOWN in seen:  # a word of the text that is spelt like it
        ranked = ranked[ranked != seen.index(UNKNOWN)]
    if not occurrences[ranked].any():
        raise ParamsError(
            f"vocab.{kind.name}.min_freq = {min_freq}: no {kind.noun} of train occurs so often; "
            f"the most frequent one occurs {max(occurrences, default=0)} times: lower it"
        )
    ids = np.zeros(len(seen), np.min_scalar_type(len(ranked)))
    ids[ranked] = np.arange(1, len(ranked) + 1)
    counts = [int(occurrences.sum() - occurrences[ranked].sum()), *occurrences[ranked].tolist()]
    return [UNKNOWN, *(seen[number] for number in ranked.tolist())], counts, ids
