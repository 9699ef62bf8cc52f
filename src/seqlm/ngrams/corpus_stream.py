"""All splits of a corpus as one stream, across their borders, with a vocabulary of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts
from seqlm.ngrams.counts.counting import Chunking, count_ngrams
from seqlm.vocab.encoded import EncodedCorpus, EncodedSplit

_MAX_ORDER = 3
"""The highest order of the n-grams that describe a text."""
_BLOCK = 1 << 20
"""Tokens that are read at once, so that a large text needs little memory."""
NOWHERE = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class CorpusStream:
    """A whole text as ids that tell all tokens apart, and its n-gram counts over these ids."""

    corpus: EncodedCorpus
    tokens: list[str]
    """The token of each id: first those of train's vocabulary, of which ``<unk>`` never occurs, then all others."""
    path: Path
    """The file with the ids."""
    counts: NgramCounts

    def ids(self) -> Ids:
        """Return the ids, mapped from their file."""
        return read_npy(self.path, mmap=True)

    @cached_property
    def first_positions(self) -> NDArray[np.int64]:
        """The position at which each token first occurs, :data:`NOWHERE` for those that do not."""
        return first_positions(self.ids(), self.counts, 1)

    @cached_property
    def ranked(self) -> NDArray[np.int64]:
        """The ids of the tokens that occur, by falling frequency, ties by first appearance."""
        occurrences = self.counts.table(1).counts
        return np.lexsort((self.first_positions, -occurrences))[: np.count_nonzero(occurrences)]

    @property
    def vocab_size(self) -> int:
        """The size of the text's own vocabulary: ``<unk>`` and the tokens that occur."""
        return len(self.ranked) + 1


def join_splits(corpus: EncodedCorpus, chunking: Chunking) -> CorpusStream:
    """Return all splits of a corpus as one stream, whose ids go to a file in the folder of ``chunking``.

    If the tokens are the whole text, the line separator joins the splits.
    """
    tokens, splits = [*corpus.vocab.tokens, *corpus.unknown_tokens], list(corpus.splits.values())
    separator = corpus.vocab.line_separator if corpus.vocab.token_kind.is_lossless else ""
    if separator and separator not in tokens:
        tokens.append(separator)
    joint = np.array([tokens.index(separator)] if separator else [], np.int64)
    path, num_ids = chunking.folder / "whole.npy", sum(map(len, splits)) + len(joint) * (len(splits) - 1)
    write_blocks(path, np.min_scalar_type(len(tokens) - 1), num_ids, _blocks(splits, joint))
    counts = count_ngrams(read_npy(path, mmap=True), len(tokens), min(_MAX_ORDER, num_ids), chunking)
    return CorpusStream(corpus, tokens, path, counts)


def _blocks(splits: list[EncodedSplit], joint: NDArray[np.int64]) -> Iterator[Ids]:
    """Yield the ids of the whole text in blocks. Unknown tokens have the ids after those of the vocabulary."""
    for index, split in enumerate(splits):
        if index > 0:
            yield joint
        num_unknown = 0
        for start in range(0, len(split), _BLOCK):
            ids = split.ids[start : start + _BLOCK].astype(np.int64)
            positions = np.flatnonzero(ids == 0)
            unknown = split.unknown[num_unknown : num_unknown + len(positions)]
            ids[positions] = unknown.astype(np.int64) + len(split.vocab)
            num_unknown += len(positions)
            yield ids


def first_positions(ids: Ids, counts: NgramCounts, order: int) -> NDArray[np.int64]:
    """Return the position at which each n-gram of an order first occurs in a stream.

    It is :data:`NOWHERE` for n-grams whose count is 0; all others must occur. The search is fast if few n-grams are
    counted, and no more of the stream is read than needed.
    """
    begins, is_due = counts.table(1).counts > 0, counts.table(order).counts > 0
    firsts = np.full(len(is_due), NOWHERE)
    for start in range(0, len(ids) - order + 1, _BLOCK):
        block = ids[start : start + _BLOCK + order - 1].astype(np.int64)
        positions = np.flatnonzero(begins[block[: len(block) - order + 1]])
        rows = block[positions]
        for n in range(2, order + 1):
            rows = counts.table(n).find(rows, block[positions + n - 1])
            positions, rows = positions[rows >= 0], rows[rows >= 0]
        new = np.flatnonzero(is_due[rows])[::-1]
        # Of several assignments the last one holds; backwards, that is the first position.
        firsts[rows[new]] = positions[new] + start
        is_due[rows[new]] = False
        if not is_due.any():
            break
    return firsts
