"""A whole text, across the borders of its splits, with a vocabulary of its own.

The tokens that the vocabulary of train lacks get numbers behind its own, so that the
numbers of train are its ids, and what was counted of train need not be counted again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.counts.count_tables import Counts
from seqlm.ngrams.counts.counting import Chunking, NgramCounter
from seqlm.ngrams.counts.first_occurrences import BLOCK, first_occurrences
from seqlm.ngrams.counts.packing import PackedCounts, bits_of
from seqlm.vocab.encoded import EncodedCorpus, EncodedSplit
from seqlm.vocab.kinds.registry import Kind

MAX_ORDER = 3
"""The n-grams that describe a text."""

Numbers = NDArray[np.integer]


class CorpusStream:
    """The splits and what joins them, one after another, in numbers that tell all tokens apart, unknown ones too."""

    def __init__(self, corpus: EncodedCorpus) -> None:
        self.corpus = corpus
        self.names = [*corpus.vocab.tokens, *corpus.unknown_tokens]
        """Token n has number n; the first, ``<unk>``, never occurs."""
        self._joint = np.empty(0, np.int64)
        """The number of the separator between splits, where one stands there."""
        separator = corpus.vocab.line_separator
        if corpus.vocab.of_kind.is_lossless and separator:
            if separator not in self.names:
                self.names.append(separator)
            self._joint = np.array([self.names.index(separator)])

    def __len__(self) -> int:
        splits = self.corpus.splits.values()
        return sum(len(split.ids) for split in splits) + len(self._joint) * (len(splits) - 1)

    def blocks(self) -> Iterator[Numbers]:
        """Yield the numbers of the whole text in blocks."""
        train, *others = self.corpus.splits.values()
        return chain(self._numbered(train), self._joined(others))

    def blocks_behind_train(self, num_before: int) -> Iterator[Numbers]:
        """Yield the numbers of so many last tokens of train, and of what follows, in blocks."""
        train, *others = self.corpus.splits.values()
        yield np.asarray(train.ids[len(train.ids) - num_before :])
        yield from self._joined(others)

    def _joined(self, splits: list[EncodedSplit]) -> Iterator[Numbers]:
        for split in splits:
            yield self._joint
            yield from self._numbered(split)

    def _numbered(self, split: EncodedSplit) -> Iterator[Numbers]:
        cursor = 0
        for start in range(0, len(split.ids), BLOCK):
            ids = np.asarray(split.ids[start : start + BLOCK])
            places = np.flatnonzero(ids == 0)
            if len(places):
                ids = ids.astype(np.int64)
                ids[places] = split.unknown[cursor : cursor + len(places)].astype(np.int64) + len(self.corpus.vocab)
                cursor += len(places)
            yield ids


@dataclass(frozen=True)
class WholeText:
    """What is known of a whole text."""

    kind: Kind
    pieces: CorpusStream
    counts: Counts
    """Over the numbers of the pieces."""
    ranked: NDArray[np.int64]
    """The numbers of the tokens that occur, by falling frequency, ties by first appearance."""
    firsts: NDArray[np.int64]
    """Where each of these tokens first occurs."""

    @property
    def num_tokens(self) -> int:
        """The length of the text."""
        return int(self.counts.table(1).counts.sum())

    @property
    def vocab_size(self) -> int:
        """The size of the text's own vocabulary: ``<unk>`` and the tokens that occur."""
        return len(self.ranked) + 1

    def first_line(self) -> list[int]:
        """Return the text's first line, encoded with its own vocabulary: the rank of each token."""
        ranks = np.zeros(len(self.pieces.names), np.int64)
        ranks[self.ranked] = np.arange(1, self.vocab_size)
        numbers = islice(chain.from_iterable(self.pieces.blocks()), self.pieces.corpus.first_line)
        return [int(ranks[number]) for number in numbers]


def join_splits(corpus: EncodedCorpus, chunking: Chunking, train: PackedCounts | None = None) -> WholeText:
    """Return all splits of a corpus as one text, joined by the line separator where tokens are all of the text.

    ``train`` is what a counter of train kept, in keys for as many tokens as the corpus has
    (:func:`num_tokens_of`); without it, and where it does not serve, all of the text is counted.
    """
    pieces = CorpusStream(corpus)
    size, order = len(pieces.names), min(MAX_ORDER, len(pieces))
    before = train if train is not None and _serves(train, pieces, order) else None
    ids = _written(pieces, chunking.folder / f"{corpus.vocab.kind}.npy", None if before is None else order - 1)
    counts = NgramCounter(ids, size, order, chunking, before=before).count()
    occurrences = counts.table(1).counts
    firsts = first_occurrences(pieces.blocks(), size, occurrences > 0)
    ranked = np.lexsort((firsts, -occurrences))[: int(np.count_nonzero(occurrences))]
    return WholeText(corpus.vocab.kind, pieces, counts, ranked, firsts[ranked])


def num_tokens_of(corpus: EncodedCorpus) -> int:
    """Return how many tokens a corpus tells apart, the unknown ones too."""
    return len(CorpusStream(corpus).names)


def _serves(train: PackedCounts, pieces: CorpusStream, order: int) -> bool:
    """Whether there is more than train, the numbers of train are its ids, and its keys are as wide as needed."""
    info = pieces.corpus.vocab.splits["train"]
    fits = train.order == order and train.bits == bits_of(len(pieces.names))
    return fits and info.num_unknown == 0 and len(pieces) > info.num_tokens


def _written(pieces: CorpusStream, path: Path, num_before: int | None) -> NDArray[Any]:
    """Return the numbers, or those of so many last tokens of train and what follows, in a file that is mapped."""
    dtype = np.min_scalar_type(len(pieces.names) - 1)
    blocks = pieces.blocks() if num_before is None else pieces.blocks_behind_train(num_before)
    num_train = len(pieces.corpus.splits["train"].ids)
    write_blocks(path, dtype, len(pieces) - (0 if num_before is None else num_train - num_before), blocks)
    return read_npy(path, mmap=True)
