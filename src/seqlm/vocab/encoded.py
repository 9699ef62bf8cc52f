"""Encoded splits as the text that they encode, without a string for each token in memory."""

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
    """A stream of tokens: their ids, and the tokens that the vocabulary lacks."""

    vocab: Vocab
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``; 0 for tokens that the vocabulary lacks."""
    unknown: NDArray[np.integer]
    """For each token of id 0, in their order, its index in ``unknown_tokens``."""
    unknown_tokens: Sequence[str]
    """The tokens that the vocabulary lacks; some of them may not occur in this stream."""

    def __len__(self) -> int:
        return len(self.ids)

    def distinct_ids(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return the ids from position ``start`` up to ``stop`` or the end, with an id of its own for each token.

        Unknown token i of ``unknown_tokens`` has the id ``len(vocab) + i``.
        """
        ids = np.asarray(self.ids[start:stop])
        if len(unknown := np.flatnonzero(ids == 0)):
            first = int(np.searchsorted(self._unknown_positions, start))
            ids = ids.astype(np.int64)
            ids[unknown] = len(self.vocab) + self.unknown[first : first + len(unknown)].astype(np.int64)
        return ids

    def lengths(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the number of characters of each token from position ``start`` up to ``stop`` or the end."""
        lengths: NDArray[np.int64] = self._lengths[self.distinct_ids(start, stop)]
        return lengths

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the tokens as they appear in the text, from position ``start`` up to ``stop`` or the end."""
        return [self._texts[index] for index in self.distinct_ids(start, stop).tolist()]

    @cached_property
    def _unknown_positions(self) -> NDArray[np.int64]:
        starts = range(0, len(self.ids), _BLOCK)
        parts = [np.flatnonzero(self.ids[start : start + _BLOCK] == 0) + start for start in starts]
        return np.concatenate([np.empty(0, np.int64), *parts])

    @cached_property
    def _texts(self) -> list[str]:
        return [*self.vocab.tokens, *self.unknown_tokens]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return self.vocab.lengths(self._texts)


@dataclass(frozen=True)
class EncodedCorpus:
    """All splits of a corpus, encoded with the vocabulary of train."""

    vocab: Vocab
    splits: dict[str, EncodedSplit]
    unknown_tokens: Sequence[str]
    """The tokens of all splits that the vocabulary lacks, in the order of their first appearance."""
    first_line: int
    """Tokens of the text's first line."""


def load_corpus(folder: Path, kind: str | None = None) -> EncodedCorpus:
    """Return the encoded corpus of a folder; its arrays are mapped from files.

    Raises DataError if a file is missing, changed, of another format, or of another
    ``kind`` of token.
    """
    vocab, unknown = Vocab.load(folder / "vocab.json", kind), read_unknown(folder)
    splits = {}
    for split in SPLITS:
        indices = unknown.indices[split]
        if len(indices) != vocab.splits[split].num_unknown:
            raise DataError(f"{folder}: unknown.json belongs to another vocab.json: run the vocab stage again")
        splits[split] = EncodedSplit(vocab, load_split(folder, split, mmap=True, vocab=vocab), indices, unknown.tokens)
    return EncodedCorpus(vocab, splits, unknown.tokens, unknown.first_line)
