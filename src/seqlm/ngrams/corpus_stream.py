"""All splits of a corpus as one stream, across their borders, with a vocabulary of its own."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.count_tables import Ids, IdStream, NgramCounts
from seqlm.ngrams.counts.counting import Chunking, NgramCounter, PackedCounts
from seqlm.vocab.corpus import EncodedCorpus

_MAX_ORDER = 3
"""The highest order of the n-grams that describe a text."""
_BLOCK = 1 << 20
"""Tokens that are read at once, so that a large text needs little memory."""
NOWHERE = int(np.iinfo(np.int64).max)


class JoinedIds:
    """The ids of all splits, joined by those of ``joint``; they are read as they are needed.

    Unknown tokens have the ids after those of the vocabulary.
    """

    def __init__(self, corpus: EncodedCorpus, joint: list[int], vocab_size: int) -> None:
        self._splits = list(corpus.splits.values())
        self._dtype = np.min_scalar_type(vocab_size - 1)
        self._joint = np.array(joint, self._dtype)

    def __len__(self) -> int:
        return sum(map(len, self._splits)) + len(self._joint) * (len(self._splits) - 1)

    def __getitem__(self, positions: slice) -> Ids:
        start, stop, _ = positions.indices(len(self))
        parts: list[Ids] = []
        for split in self._splits:
            parts.append(split.distinct_ids(max(start, 0), max(min(stop, len(split)), 0)))
            start, stop = start - len(split), stop - len(split)
            parts.append(self._joint[max(start, 0) : max(stop, 0)])
            start, stop = start - len(self._joint), stop - len(self._joint)
        return np.concatenate(parts, dtype=self._dtype, casting="unsafe")


@dataclass(frozen=True)
class CorpusStream:
    """A whole text as ids that tell all tokens apart, and its n-gram counts over these ids."""

    corpus: EncodedCorpus
    tokens: list[str]
    """The token of each id: first those of train's vocabulary, of which ``<unk>`` never occurs, then all others."""
    ids: IdStream
    counts: NgramCounts

    @cached_property
    def first_positions(self) -> NDArray[np.int64]:
        """The position at which each token first occurs, :data:`NOWHERE` for those that do not."""
        return first_positions(self.ids, self.counts, 1)

    @cached_property
    def ranked(self) -> NDArray[np.int64]:
        """The ids of the tokens that occur, by falling frequency, ties by first appearance."""
        occurrences = self.counts.table(1).counts
        return np.lexsort((self.first_positions, -occurrences))[: np.count_nonzero(occurrences)]

    @property
    def vocab_size(self) -> int:
        """The size of the text's own vocabulary: ``<unk>`` and the tokens that occur."""
        return len(self.ranked) + 1


def join_splits(corpus: EncodedCorpus, chunking: Chunking, train: PackedCounts | None = None) -> CorpusStream:
    """Return all splits of a corpus as one stream; if the tokens are the whole text, the line separator joins them.

    ``train`` has the n-grams of the training split, which need not be counted again unless some tokens are unknown.
    """
    tokens = [*corpus.vocab.tokens, *corpus.unknown_tokens]
    separator = corpus.vocab.line_separator if corpus.vocab.token_kind.is_lossless else ""
    if separator and separator not in tokens:
        tokens.append(separator)
    ids = JoinedIds(corpus, [tokens.index(separator)] if separator else [], len(tokens))
    known = None if corpus.vocab.splits["train"].num_unknown else train
    counter = NgramCounter(ids, len(tokens), min(_MAX_ORDER, len(ids)), chunking, known)
    return CorpusStream(corpus, tokens, ids, counter.count())


def first_positions(ids: IdStream, counts: NgramCounts, order: int) -> NDArray[np.int64]:
    """Return the position at which each n-gram of an order first occurs in a stream.

    It is :data:`NOWHERE` for n-grams whose count is 0; all others must occur. The search is fast if few n-grams are
    counted, and no more of the stream is read than needed.
    """
    is_due = counts.table(order).counts > 0
    begins = is_due if order == 1 else counts.table(1).counts > 0
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
