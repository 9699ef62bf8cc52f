"""Descriptive tables of a text: frequent n-grams, Zipf, growth, and what a full table would cost.

They describe the whole text, across the borders of the splits, with a vocabulary of its
own; models see train alone.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.ngrams.corpus_stream import WholeText
from seqlm.ngrams.most_frequent import by_frequency
from seqlm.ngrams.zipf import ZipfFit, fit_zipf, thin_ranks, vocabulary_growth
from seqlm.vocab.kinds.registry import kind_of
from seqlm.vocab.vocabulary import UNKNOWN

_HEAD = 10
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)


def frequent_ngrams(text: WholeText, limit: int) -> pd.DataFrame:
    """Return the most frequent n-grams of each order: columns n, rank, ngram, count."""
    rows = []
    kind = kind_of(text.kind)
    for n in range(1, text.counts.max_order + 1):
        best = by_frequency(text.pieces.blocks(), text.counts, n, limit)
        for rank, (row, ids) in enumerate(zip(best, text.counts.tokens_of(n, best), strict=True), start=1):
            ngram = kind.join(text.pieces.names[index] for index in ids)
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
    lengths, distinct, beta = vocabulary_growth(text.firsts, text.num_tokens)
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
    size = text.vocab_size
    rows = []
    for n in range(1, text.counts.max_order + 1):
        seen = len(ranked_counts(text, n))
        rows.append((n, size**n, seen, seen / size**n))
    return pd.DataFrame(rows, columns=["n", "full_table", "seen", "share"])


def head(text: WholeText) -> dict[str, Any]:
    """Return the head of the whole text's vocabulary and the first line encoded with it, as the book prints them."""
    tokens = [UNKNOWN, *(text.pieces.names[number] for number in text.ranked[: _HEAD - 1].tolist())]
    # DVC cannot read a plot file with an empty list in it.
    return {"tokens": tokens, "first_line": text.first_line() or None}


def summary(text: WholeText, fits: dict[int, ZipfFit], beta: float) -> dict[str, Any]:
    """Return the headline numbers of a text's statistics, for a metrics file."""
    return {
        "tokens": text.num_tokens,
        "vocabulary_size": text.vocab_size,
        "distinct": {str(n): len(ranked_counts(text, n)) for n in range(1, text.counts.max_order + 1)},
        "zipf": {str(n): asdict(fit) for n, fit in fits.items()},
        "heaps_beta": None if np.isnan(beta) else beta,
    }
