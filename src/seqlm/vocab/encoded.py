"""Encoded splits as the text that they stand for, without holding a string for each token."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.oov import read_unknown
from seqlm.vocab.vocabulary import Vocab

_BLOCK = 1 << 20


@dataclass(frozen=True)
class EncodedSplit:
    """A stream of tokens: their ids, and what stands in the text where the vocabulary has none."""

    vocab: Vocab
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``; 0 for tokens that the vocabulary lacks."""
    unknown: NDArray[np.integer]
    """For each token of id 0, in their order, its place in ``unknown_tokens``."""
    unknown_tokens: Sequence[str]
    """The tokens that the vocabulary lacks; more may stand here than occur in this stream."""

    def __len__(self) -> int:
        return len(self.ids)

    def unknown_places(self) -> NDArray[np.int64]:
        """Return where the unknown tokens stand; shape ``(len(unknown),)``."""
        parts = [
            np.flatnonzero(self.ids[start : start + _BLOCK] == 0) + start for start in range(0, len(self.ids), _BLOCK)
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def lengths(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the characters of each token from place ``start`` up to ``stop`` or the end."""
        ids = np.asarray(self.ids[start:stop])
        found: NDArray[np.int64] = self._known_lengths[ids]
        found[ids == 0] = self._unknown_lengths[self._unknown_between(start, ids)]
        return found

    def ends(self) -> NDArray[np.int64]:
        """Return how many characters of tokens have passed after each token; shape ``(num_tokens,)``.

        What stands between words is no token and is not counted.
        """
        ends = np.empty(len(self.ids), np.int64)
        for start in range(0, len(self.ids), _BLOCK):
            ends[start : start + _BLOCK] = self.lengths(start, start + _BLOCK)
        return np.cumsum(ends, out=ends)

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the tokens as they stand in the text, from place ``start`` up to ``stop`` or the end."""
        ids = np.asarray(self.ids[start:stop])
        unknown = iter(self._unknown_between(start, ids).tolist())
        tokens = self.vocab.tokens
        return [tokens[index] if index else self.unknown_tokens[next(unknown)] for index in ids.tolist()]

    def _unknown_between(self, start: int, ids: NDArray[Any]) -> NDArray[np.integer]:
        """Return the places in ``unknown_tokens`` of the unknown tokens among ``ids``, which begin at ``start``."""
        first = int(np.searchsorted(self._places, start))
        return np.asarray(self.unknown[first : first + np.count_nonzero(ids == 0)])

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return self.unknown_places()

    @cached_property
    def _known_lengths(self) -> NDArray[np.int64]:
        return self.vocab.lengths(self.vocab.tokens)

    @cached_property
    def _unknown_lengths(self) -> NDArray[np.int64]:
        return self.vocab.lengths(self.unknown_tokens)


@dataclass(frozen=True)
class EncodedCorpus:
    """All splits of a corpus, encoded with the vocabulary of train."""

    vocab: Vocab
    splits: dict[str, EncodedSplit]
    first_line: int
    """Tokens of the text's first line."""

    @property
    def unknown_tokens(self) -> Sequence[str]:
        """The tokens of all splits that the vocabulary lacks, in the order of their first appearance."""
        return next(iter(self.splits.values())).unknown_tokens


def load_corpus(folder: Path, kind: str | None = None) -> EncodedCorpus:
    """Return the encoded corpus of a folder; its arrays are mapped from files.

    Raises DataError where a file is missing, changed, of another format, or of another
    ``kind`` of token.
    """
    vocab, unknown = Vocab.load(folder / "vocab.json", kind), read_unknown(folder)
    splits = {}
    for split in SPLITS:
        numbers = unknown.numbers[split]
        if len(numbers) != vocab.splits[split].num_unknown:
            raise DataError(f"{folder}: unknown.json belongs to another vocab.json: run the vocab stage again")
        splits[split] = EncodedSplit(vocab, load_split(folder, split, mmap=True, vocab=vocab), numbers, unknown.tokens)
    return EncodedCorpus(vocab, splits, unknown.first_line)


def encode_tokens(vocab: Vocab, tokens: Sequence[str]) -> EncodedSplit:
    """Return a text that is no split of the corpus as a stream of its tokens."""
    ids = vocab.encode(tokens)
    places = np.flatnonzero(ids == 0)
    return EncodedSplit(vocab, ids, np.arange(len(places)), [tokens[place] for place in places.tolist()])
