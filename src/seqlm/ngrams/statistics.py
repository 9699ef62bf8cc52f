"""Descriptive tables of a text: frequent n-grams, Zipf, growth, and what a full table would cost.

They describe the whole text, across the borders of the splits, with a vocabulary of its
own; models see train alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.files import read_npy, write_blocks
from seqlm.ngrams.counting import Chunking, count_ngrams
from seqlm.ngrams.counts import Counts
from seqlm.ngrams.frequent import by_frequency
from seqlm.ngrams.zipf import ZipfFit, fit_zipf, thin_ranks, vocabulary_growth
from seqlm.text import words
from seqlm.vocab import UNKNOWN, Kind, token_blocks

MAX_ORDER = 3
_HEAD = 10
_BLOCK = 1 << 20
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class WholeText:
    """The token ids of a whole text, its vocabulary by frequency, and its counts."""

    kind: Kind
    tokens: list[str]
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``, mapped from a file."""
    counts: Counts


def read_whole(paths: Sequence[Path], kind: Kind, line_separator: str, chunking: Chunking) -> WholeText:
    """Return all splits of a text as one, joined by the line separator where they are characters.

    The vocabulary is ``<unk>`` and the tokens by falling frequency, ties by first
    appearance. The ids lie in a file in the folder of ``chunking``.
    """

    def blocks() -> Iterator[Sequence[str]]:
        for index, path in enumerate(paths):
            if index and kind == "char" and line_separator:
                yield line_separator
            yield from token_blocks(path, kind, line_separator)

    # One pass over the text numbers the tokens by first appearance; then they are numbered anew.
    numbers, unsorted_path = _Numbers(), chunking.folder / f"{kind}.unsorted"
    with unsorted_path.open("wb") as file:
        for tokens_of_block in blocks():
            file.write(np.fromiter(map(numbers.__getitem__, tokens_of_block), np.uint32, len(tokens_of_block)).data)
    occurrences = np.zeros(len(numbers), np.int64)
    for block in _read_blocks(unsorted_path):
        occurrences += np.bincount(block, minlength=len(numbers))
    ranked = np.argsort(-occurrences, kind="stable")
    dtype = np.min_scalar_type(len(numbers))
    new_ids = np.empty(len(numbers), dtype)
    new_ids[ranked] = np.arange(1, len(numbers) + 1)
    path = chunking.folder / f"{kind}.npy"
    write_blocks(path, dtype, int(occurrences.sum()), (new_ids[block] for block in _read_blocks(unsorted_path)))
    unsorted_path.unlink()
    names = list(numbers)
    tokens, ids = [UNKNOWN, *(names[number] for number in ranked)], read_npy(path, mmap=True)
    return WholeText(kind, tokens, ids, count_ngrams(ids, len(tokens), min(MAX_ORDER, len(ids)), chunking))


class _Numbers(dict[str, int]):
    """Numbers what it is asked for by first appearance."""

    def __missing__(self, token: str) -> int:
        self[token] = len(self)
        return self[token]


def _read_blocks(path: Path) -> Iterator[NDArray[np.uint32]]:
    """Yield a file's numbers in blocks; it is read and not mapped, so that its pages take no memory of this process."""
    with path.open("rb") as file:
        while len(block := np.fromfile(file, np.uint32, _BLOCK)):
            yield block


def frequent_ngrams(text: WholeText, limit: int) -> pd.DataFrame:
    """Return the most frequent n-grams of each order: columns n, rank, ngram, count."""
    rows = []
    joiner = " " if text.kind == "word" else ""
    for n in range(1, text.counts.max_order + 1):
        best = by_frequency(text.ids, text.counts, n, limit)
        for rank, (row, ids) in enumerate(zip(best, text.counts.tokens_of(n, best), strict=True), start=1):
            ngram = joiner.join(text.tokens[index] for index in ids)
            rows.append((n, rank, ngram, int(text.counts.table(n).counts[row])))
    return pd.DataFrame(rows, columns=["n", "rank", "ngram", "count"])


def ranked_counts(text: WholeText, n: int) -> NDArray[Any]:
    """Return the counts of an order by falling size, those of 0 left out."""
    counts = text.counts.table(n).counts
    # The smallest type: a large text has tens of millions of distinct n-grams.
    ranked = np.array(counts, np.min_scalar_type(counts.max(initial=0)))
    ranked.sort()
    return ranked[::-1][: int(np.count_nonzero(ranked))]


def zipf_table(text: WholeText) -> pd.DataFrame:
    """Return points of the rank-frequency curves, thinned evenly on a logarithmic axis: n, rank, count."""
    parts = []
    for n in range(1, text.counts.max_order + 1):
        counts = ranked_counts(text, n)
        ranks = thin_ranks(len(counts))
        parts.append(pd.DataFrame({"n": n, "rank": ranks, "count": counts[ranks - 1]}))
    return pd.concat(parts, ignore_index=True)


def zipf_fits(text: WholeText, min_count: int) -> dict[int, ZipfFit]:
    """Return the fit of Zipf's law for each order that has at least two distinct n-grams."""
    ranked = {n: ranked_counts(text, n) for n in range(1, text.counts.max_order + 1)}
    return {n: fit_zipf(counts, min_count) for n, counts in ranked.items() if len(counts) >= 2}


def growth_table(text: WholeText) -> tuple[pd.DataFrame, float]:
    """Return distinct tokens against tokens read (columns tokens, distinct) and Heaps' exponent."""
    lengths, distinct, beta = vocabulary_growth(text.ids, len(text.tokens))
    return pd.DataFrame({"tokens": lengths, "distinct": distinct}), beta


def min_freq_table(text: WholeText) -> pd.DataFrame:
    """Return the vocabulary's size against ``min_freq`` (exercise 8.2-2), ``<unk>`` included."""
    counts = ranked_counts(text, 1)
    rows = []
    for min_freq in _MIN_FREQS:
        kept = counts >= min_freq
        rows.append((min_freq, int(kept.sum()) + 1, float(counts[~kept].sum() / counts.sum())))
    return pd.DataFrame(rows, columns=["min_freq", "vocabulary_size", "unknown_share"])


def storage_table(text: WholeText) -> pd.DataFrame:
    """Return how many numbers a full table of each order would hold and how many are seen (exercise 8.3-1)."""
    size = len(text.tokens)
    rows = []
    for n in range(1, text.counts.max_order + 1):
        seen = len(ranked_counts(text, n))
        rows.append((n, size**n, seen, seen / size**n))
    return pd.DataFrame(rows, columns=["n", "full_table", "seen", "share"])


def head(text: WholeText, first_line: str) -> dict[str, Any]:
    """Return the head of the whole text's vocabulary and the first line encoded with it, as the book prints them."""
    num_tokens = len(first_line) if text.kind == "char" else len(words(first_line))
    return {"tokens": text.tokens[:_HEAD], "first_line": text.ids[:num_tokens].tolist()}


def summary(text: WholeText, fits: dict[int, ZipfFit], beta: float) -> dict[str, Any]:
    """Return the headline numbers of a text's statistics, for a metrics file."""
    return {
        "tokens": len(text.ids),
        "vocabulary_size": len(text.tokens),
        "distinct": {str(n): len(ranked_counts(text, n)) for n in range(1, text.counts.max_order + 1)},
        "zipf": {str(n): asdict(fit) for n, fit in fits.items()},
        "heaps_beta": None if np.isnan(beta) else beta,
    }
