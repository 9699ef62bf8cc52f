"""Descriptive tables of a text: frequent n-grams, Zipf, growth, and what a full table would cost.

They describe the whole text, across the borders of the splits, with a vocabulary of its own; models see only train.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.ngrams.corpus_stream import CorpusStream, first_positions
from seqlm.ngrams.counts.count_tables import IdStream, NgramCounts, Rows
from seqlm.ngrams.zipf import fit_zipf, thin_ranks, vocabulary_growth
from seqlm.vocab.vocabulary import UNKNOWN

_HEAD = 10
_FIRST_IDS = 64
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)


def describe(text: CorpusStream, zipf_min_count: int, num_frequent: int) -> dict[str, pd.DataFrame | dict[str, Any]]:
    """Return the tables of a text by name: frames for CSV, mappings for JSON."""
    zipf, storage, distinct, fits = [], [], {}, {}
    for n, table in enumerate(text.counts.tables, start=1):
        ranked = _ranked(table.counts)
        ranks = thin_ranks(len(ranked))
        zipf.append(pd.DataFrame({"n": n, "rank": ranks, "count": ranked[ranks - 1]}))
        size = text.vocab_size**n
        storage.append((n, size, len(ranked), len(ranked) / size))
        distinct[str(n)] = len(ranked)
        if len(ranked) >= 2:
            fits[str(n)] = asdict(fit_zipf(ranked, zipf_min_count))
    num_tokens = int(text.counts.table(1).counts.sum())
    lengths, growth, beta = vocabulary_growth(text.first_positions[text.ranked], num_tokens)
    return {
        "frequencies": _frequencies(text, num_frequent),
        "zipf": pd.concat(zipf, ignore_index=True),
        "growth": pd.DataFrame({"tokens": lengths, "distinct": growth}),
        "min_freq": _min_freq_table(text.counts.table(1).counts[text.ranked]),
        "storage": pd.DataFrame(storage, columns=["n", "full_table", "seen", "share"]),
        "summary": {
            "tokens": num_tokens,
            "vocabulary_size": text.vocab_size,
            "distinct": distinct,
            "zipf": fits,
            "heaps_beta": None if np.isnan(beta) else beta,
        },
        "head": _head(text),
    }


def _ranked(counts: NDArray[np.integer]) -> NDArray[Any]:
    """Return the counts by falling size, without those of 0."""
    # The smallest type: a large text has tens of millions of distinct n-grams.
    ranked = np.array(counts, np.min_scalar_type(counts.max(initial=0)))
    ranked.sort()
    return ranked[::-1][: np.count_nonzero(ranked)]


def _frequencies(text: CorpusStream, limit: int) -> pd.DataFrame:
    """Return the most frequent n-grams of each order."""
    rows = []
    for n, table in enumerate(text.counts.tables, start=1):
        best = most_frequent(text.ids, text.counts, n, limit)
        for rank, (row, ids) in enumerate(zip(best, table.tokens_of(best), strict=True), start=1):
            ngram = text.corpus.vocab.join(text.tokens[index] for index in ids)
            rows.append((n, rank, ngram, int(table.counts[row])))
    return pd.DataFrame(rows, columns=["n", "rank", "ngram", "count"])


def most_frequent(ids: IdStream, counts: NgramCounts, order: int, limit: int) -> Rows:
    """Return the rows of the ``limit`` most frequent n-grams of an order, ties by first appearance.

    ``ids`` are the text that was counted. Rows that never occur are left out.
    """
    table = counts.table(order)
    candidates = np.flatnonzero(table.counts >= _ranked(table.counts)[:limit].min())
    # Tables of the candidates and their prefixes alone: in these it is fast to look up a whole text.
    ngrams, vocab_size = table.tokens_of(candidates), counts.vocab_size
    rows = ngrams[:, 0]
    arrays = [(np.arange(vocab_size), np.bincount(rows, minlength=vocab_size))]
    for tokens in ngrams.T[1:]:
        keys, rows, sizes = np.unique(rows * vocab_size + tokens, return_inverse=True, return_counts=True)
        arrays.append((keys, sizes))
    firsts = first_positions(ids, NgramCounts(arrays), order)[rows]
    return candidates[np.lexsort((firsts, -table.counts[candidates].astype(np.int64)))][:limit]


def _min_freq_table(counts: NDArray[np.integer]) -> pd.DataFrame:
    """Return the vocabulary's size against ``min_freq`` (exercise 8.2-2), ``<unk>`` included."""
    rows = []
    for min_freq in _MIN_FREQS:
        kept = counts >= min_freq
        rows.append((min_freq, int(kept.sum()) + 1, float(counts[~kept].sum() / counts.sum())))
    return pd.DataFrame(rows, columns=["min_freq", "vocabulary_size", "unknown_share"])


def _head(text: CorpusStream) -> dict[str, Any]:
    """Return the first tokens of the text's vocabulary, and the beginning of the text encoded with it."""
    ranks = np.zeros(len(text.tokens), np.int64)
    ranks[text.ranked] = np.arange(1, text.vocab_size)
    first_ids = ranks[text.ids[:_FIRST_IDS]].tolist()
    return {
        "tokens": [UNKNOWN, *(text.tokens[index] for index in text.ranked[: _HEAD - 1])],
        # DVC cannot read a plot file with an empty list in it.
        "first_ids": first_ids or None,
    }
