"""A whole text, across the borders of its splits, with a vocabulary of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.count_tables import Counts
from seqlm.ngrams.counting import Chunking, count_ngrams
from seqlm.ngrams.first_places import BLOCK, first_places
from seqlm.vocab.encoded import EncodedCorpus, EncodedSplit
from seqlm.vocab.vocabulary import UNKNOWN, Kind

_MAX_ORDER = 3


@dataclass(frozen=True)
class WholeText:
    """The token ids of a whole text, its vocabulary by frequency, and its counts."""

    kind: Kind
    tokens: list[str]
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``, mapped from a file."""
    firsts: NDArray[np.int64]
    """Where each token but ``<unk>``, which stands nowhere, first occurs; shape ``(len(tokens) - 1,)``."""
    counts: Counts
    first_line: int
    """Tokens of the first line."""


def join_splits(corpus: EncodedCorpus, chunking: Chunking) -> WholeText:
    """Return all splits of a corpus as one text, joined by the line separator where they are characters.

    The vocabulary is ``<unk>`` and the tokens by falling frequency, ties by first
    appearance. The ids lie in a file in the folder of ``chunking``.
    """
    pieces = _Pieces(corpus)
    occurrences = np.zeros(len(pieces.tokens), np.int64)
    for block in pieces.blocks():
        counts = np.bincount(block)
        occurrences[: len(counts)] += counts
    firsts = first_places(_with_starts(pieces.blocks()), len(pieces.tokens), occurrences > 0)
    ranked = np.lexsort((firsts, -occurrences))
    ranked = ranked[: int(np.count_nonzero(occurrences))]
    tokens = [UNKNOWN, *(pieces.tokens[number] for number in ranked.tolist())]
    dtype = np.min_scalar_type(len(tokens) - 1)
    ids_of = np.zeros(len(pieces.tokens), dtype)
    ids_of[ranked] = np.arange(1, len(tokens))
    path = chunking.folder / f"{corpus.vocab.kind}.npy"
    write_blocks(path, dtype, int(occurrences.sum()), (ids_of[block] for block in pieces.blocks()))
    ids = read_npy(path, mmap=True)
    counted = count_ngrams(ids, len(tokens), min(_MAX_ORDER, len(ids)), chunking)
    return WholeText(corpus.vocab.kind, tokens, ids, firsts[ranked], counted, corpus.first_line)


class _Pieces:
    """The splits and what joins them, one after another, in numbers that tell all tokens apart, unknown ones too."""

    def __init__(self, corpus: EncodedCorpus) -> None:
        self._splits = list(corpus.splits.values())
        self.tokens = [*corpus.vocab.tokens, *corpus.unknown_tokens]
        """Token n has number n; the first, ``<unk>``, never occurs."""
        self._first_unknown = len(corpus.vocab)
        self._joint: list[int] = []
        """The number of the separator between splits, where one stands there."""
        separator = corpus.vocab.line_separator
        if corpus.vocab.kind == "char" and separator:
            if separator not in self.tokens:
                self.tokens.append(separator)
            self._joint = [self.tokens.index(separator)]

    def blocks(self) -> Iterator[NDArray[np.integer]]:
        """Yield the numbers in blocks."""
        for index, split in enumerate(self._splits):
            if index and self._joint:
                yield np.array(self._joint)
            yield from self._numbered(split)

    def _numbered(self, split: EncodedSplit) -> Iterator[NDArray[np.integer]]:
        cursor = 0
        for start in range(0, len(split.ids), BLOCK):
            ids = np.asarray(split.ids[start : start + BLOCK])
            places = np.flatnonzero(ids == 0)
            if len(places):
                ids = ids.astype(np.int64)
                ids[places] = split.unknown[cursor : cursor + len(places)].astype(np.int64) + self._first_unknown
                cursor += len(places)
            yield ids


def _with_starts(blocks: Iterator[NDArray[np.integer]]) -> Iterator[tuple[int, NDArray[np.integer]]]:
    start = 0
    for block in blocks:
        yield start, block
        start += len(block)
