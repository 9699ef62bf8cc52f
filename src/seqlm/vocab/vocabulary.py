"""Vocabularies of one kind of token, and the choice of their tokens (section 8.2).

A vocabulary is built only from the training split. ``<unk>`` is token 0; then
come the tokens of the text by falling frequency, ties by first appearance.
Subwords are all here, including those that do not occur.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import write_bytes
from seqlm.core.stored import Sha256, Stored, VocabKey, read_verified
from seqlm.vocab.kinds import Kind, SubwordTokenizer, TokenKind, token_kind
from seqlm.vocab.separators import BLANKS, Separators

UNKNOWN = "<unk>"
TOKENIZER_FILE = "tokenizer.json"
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class SplitInfo:
    """Size of one encoded split; ``num_chars`` counts its lines joined by the line separator, and
    is the same for all kinds of tokens."""

    num_tokens: _Count
    num_chars: _Count
    num_unknown: _Count
    sha256: Sha256

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

    def __hash__(self) -> int:
        return hash(self.key)

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

    @cached_property
    def token_kind(self) -> TokenKind:
        """The kind of token."""
        return token_kind(self.kind)

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

    def split(self, name: str) -> SplitInfo:
        """The size of a split. Raises DataError if it is not known."""
        if name not in self.splits:
            raise DataError(f"the vocabulary of {self.kind} tokens is without the split {name}")
        return self.splits[name]

    @classmethod
    def load(cls, path: Path, kind: str | None = None) -> "Vocab":
        """Read a ``vocab.json``. Raises DataError if it is broken, of another format, or of another
        ``kind``."""
        stored = VocabFile.read(path)
        if kind not in (None, stored.kind):
            problem = f"holds tokens of kind {stored.kind}, not {kind}"
            raise DataError(f"{path}: {problem}: {stored.advice}")
        values, tokenizer = dict(stored), None
        if sha256 := values.pop("tokenizer"):
            file, size = path.with_name(TOKENIZER_FILE), VocabFile.max_bytes
            tokenizer = SubwordTokenizer(read_verified(file, sha256, stored.advice, size).decode())
        return cls(**values, tokenizer=tokenizer)

    def save(self, path: Path) -> None:
        """Write this vocabulary as JSON with a checksum, and its tokenizer beside it."""
        values = {name: getattr(self, name) for name in VocabFile.model_fields}
        if self.tokenizer is not None:
            content = self.tokenizer.description.encode()
            write_bytes(path.with_name(TOKENIZER_FILE), content)
            values["tokenizer"] = hashlib.sha256(content).hexdigest()
        VocabFile.model_construct(**values).write(path)


class VocabFile(Stored):
    """The content of ``vocab.json``."""

    version = 7
    advice = "run the vocab stage again"
    max_bytes = 1 << 30

    kind: Kind
    line_separator: Literal["", " ", "\n"]
    normalise: Literal["letters", "none"]
    separators: Separators | None
    tokenizer: Sha256 | None
    splits: dict[str, SplitInfo]
    tokens: list[str]
    counts: list[_Count]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        kind, train = token_kind(self.kind), self.splits.get("train")
        possible = kind.separators("", self.line_separator)
        wrong = {
            "tokens": self.tokens[:1] != [UNKNOWN] or len(set(self.tokens)) < len(self.tokens),
            "counts": len(self.counts) != len(self.tokens),
            "splits": train is None or train.num_tokens == 0,
            "tokenizer": kind.has_unknown == bool(self.tokenizer),
            "separators": [*map(set, self.separators or ())] != [*map(set, possible or ())],
        }
        if any(wrong.values()):
            raise ValueError(f"impossible {', '.join(filter(wrong.get, wrong))}")
        return self


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
            f"vocab.{kind.name}.min_freq = {min_freq}: no {kind.noun} of the training set occurs "
            f"so often; the most frequent one occurs {max(occurrences, default=0)} times: lower it"
        )
    ids = np.zeros(len(seen), np.min_scalar_type(len(ranked)))
    ids[ranked] = np.arange(1, len(ranked) + 1)
    counts = [int(occurrences.sum() - occurrences[ranked].sum()), *occurrences[ranked].tolist()]
    return [UNKNOWN, *(seen[number] for number in ranked.tolist())], counts, ids
