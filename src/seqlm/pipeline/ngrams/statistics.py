"""Descriptive tables of a text: frequent n-grams, Zipf's law (8.3.7), and the growth of the
vocabulary.

They describe the whole text, across the borders of the splits, with a vocabulary of its own; models
see only the training split.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.core.threads import imap
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Rows, Table
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.ngrams.engines import choose_engine
from seqlm.vocab.corpus import EncodedCorpus
from seqlm.vocab.vocabulary import UNKNOWN

# What the tables show, besides the settings.
_MAX_ORDER = 3
"""The highest order of the n-grams that describe a text."""
_HEAD, _FIRST_IDS, _NUM_RANKS = 10, 64, 400
"""Tokens of the vocabulary, ids of the text, and ranks at most, that are shown."""
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)
_BLOCK = 1 << 20
"""Tokens that are looked up at once, so that a large text needs little memory."""

TableRows = list[dict[str, Any]]


def fit_zipf(counts: NDArray[Any], min_count: int = 2) -> dict[str, float]:
    """Fit a line to the logarithms of ranks and of counts, as in the book's figures.

    ``counts`` are at least two, in descending order. The ranks whose count reaches ``min_count``
    are fitted, or all if fewer than two do. Returns

    - ``max_rank``: the last rank that was fitted
    - ``alpha_least_squares``: the slope of the line, sign reversed. It describes this curve. It is
      no unbiased estimate of the exponent of a law that the tokens were drawn from: rare tokens
      are ranked by counts that chance alone made large or small, and others are not seen at all.
    - ``share_once``: share of the distinct n-grams that occur once
    """
    max_rank = int(np.count_nonzero(counts >= min_count))
    max_rank = max_rank if max_rank >= 2 else len(counts)
    # Divided by the last, equal counts have logarithms of 0 and a slope of exactly 0.
    log_counts = np.log(counts[:max_rank] / counts[max_rank - 1])
    covariance = np.cov(np.log(np.arange(1, max_rank + 1)), log_counts)
    return {
        "max_rank": max_rank,
        "alpha_least_squares": float(abs(covariance[0, 1]) / covariance[0, 0]),
        "share_once": float(np.mean(counts == 1)),
    }


def vocabulary_growth(
    firsts: NDArray[np.int64], num_tokens: int, num_points: int = 60
) -> tuple[TableRows, float]:
    """Return rows of ``tokens`` read and the ``distinct`` ones among them, and Heaps' exponent
    beta.

    ``firsts`` has the position at which each distinct token first occurs in a text of
    ``num_tokens`` tokens. Heaps' law says that distinct(N) is proportional to N^beta; beta is the
    slope of the line through the logarithms, without the first twentieth of the points.
    """
    lengths = np.unique(np.geomspace(1, num_tokens, num_points).astype(np.int64))
    distinct = np.searchsorted(np.sort(firsts), lengths)
    used = slice(len(lengths) // 20, None)
    # Divided by the last, equal numbers have logarithms of 0 and a slope of exactly 0.
    logs = log(lengths[used]), log(distinct[used] / distinct[-1])
    beta = float(np.polyfit(*logs, 1)[0]) if len(lengths) > 2 else math.nan
    rows = zip(lengths.tolist(), distinct.tolist(), strict=True)
    return [{"tokens": tokens, "distinct": seen} for tokens, seen in rows], beta


@dataclass(frozen=True)
class CorpusStream:
    """A whole text as ids that tell all tokens apart, and its n-gram counts over these ids."""

    corpus: EncodedCorpus
    tokens: list[str]
    """The token of each id: first those of the models' vocabulary, of which ``<unk>`` never occurs,
    then all others."""
    ids: Ids
    counts: NgramCounts


def join_splits(
    corpus: EncodedCorpus, memory: int | None, folder: Path, spark: str | None = None
) -> CorpusStream:
    """Return all splits of a corpus as one stream; if the tokens are the whole text, the line
    separator joins them.

    ``memory``, ``folder``, ``spark``: how it is counted
    (:func:`seqlm.pipeline.ngrams.engines.choose_engine`).
    """
    tokens = [*corpus.vocab.tokens, *corpus.unknown_tokens]
    separator = corpus.vocab.line_separator if corpus.vocab.token_kind.is_lossless else ""
    if separator and separator not in tokens:
        tokens.append(separator)
    joint = [tokens.index(separator)] if separator else []
    parts = [part for split in corpus.splits.values() for part in (joint, split.distinct_ids())][1:]
    ids = np.concatenate(parts, dtype=np.min_scalar_type(len(tokens) - 1), casting="unsafe")
    order = min(_MAX_ORDER, len(ids))
    engine = choose_engine(ids, len(tokens), order, memory, folder, spark)
    return CorpusStream(corpus, tokens, ids, count_ngrams(ids, len(tokens), order, engine))


def first_positions(ids: Ids, counts: NgramCounts, order: int) -> Rows:
    """Return the position at which each n-gram of an order first occurs in a stream; its length
    for one that does not.

    The search ends where all have occurred, so it is fast if few, frequent n-grams are counted.
    """
    firsts = np.full(len(counts.table(order)), len(ids))
    for start in range(0, len(ids) - order + 1, _BLOCK):
        block = np.asarray(ids[start : start + _BLOCK + order - 1], np.int64)
        # Few positions have a token that begins one, fewer go on as one does.
        positions = np.flatnonzero(counts.table(1).counts[block[: len(block) - order + 1]])
        rows = block[positions]
        for n in range(2, order + 1):
            rows = counts.table(n).find(rows, block[positions + n - 1])
            positions, rows = positions[rows >= 0], rows[rows >= 0]
        # The last one first: of several assignments to one place, the last one holds.
        new = np.flatnonzero(firsts[rows] == len(ids))[::-1]
        firsts[rows[new]] = positions[new] + start
        if len(ids) not in firsts:
            break
    return firsts


def describe(text: CorpusStream, num_frequent: int = 100) -> dict[str, Any]:
    """Return the tables of a text by name: rows for CSV, mappings for JSON."""
    orders = list(range(1, text.counts.max_order + 1))
    counts = list(imap(_descending_counts, text.counts.tables))
    fits = imap(lambda counts: fit_zipf(counts) if len(counts) >= 2 else None, counts)
    highest = [counts[0], *(of_order[:num_frequent] for of_order in counts[1:])]
    found = imap(lambda n: most_frequent(text.ids, text.counts, n, highest[n - 1]), orders)
    best, firsts = zip(*found, strict=True)
    ranked = best[0]
    growth, beta = vocabulary_growth(firsts[0], len(text.ids))
    vocab_size, seen = len(ranked) + 1, [len(of_order) for of_order in counts]  # with <unk>
    return {
        "frequencies": [
            row for n in orders for row in _frequencies(text, n, best[n - 1][:num_frequent])
        ],
        "zipf": [row for n in orders for row in _zipf_curve(n, counts[n - 1])],
        "growth": growth,
        "min_freq": [  # exercise 8.2-2
            {
                "min_freq": least,
                "vocabulary_size": 1 + np.count_nonzero(counts[0] >= least),
                "unknown_share": counts[0][counts[0] < least].sum() / len(text.ids),
            }
            for least in _MIN_FREQS
        ],
        "storage": [
            {"n": n, "full_table": vocab_size**n, "seen": size, "share": size / vocab_size**n}
            for n, size in zip(orders, seen, strict=True)
        ],
        "summary": {
            "tokens": len(text.ids),
            "vocabulary_size": vocab_size,
            "distinct": {str(n): size for n, size in zip(orders, seen, strict=True)},
            "zipf": {str(n): fit for n, fit in zip(orders, fits, strict=True) if fit},
            "heaps_beta": None if np.isnan(beta) else beta,
        },
        "head": _head(text, ranked),
    }


def _descending_counts(table: Table) -> NDArray[Any]:
    """Return the counts of an order in descending order, without those of 0."""
    counts = table.counts
    # The smallest type: a large text has tens of millions of distinct n-grams.
    return np.sort(counts[counts > 0].astype(np.min_scalar_type(counts.max(initial=0))))[::-1]


def _zipf_curve(n: int, counts: NDArray[Any]) -> TableRows:
    """Return as many ranks, with their counts, as draw a curve on a logarithmic axis."""
    ranks = np.unique(np.geomspace(1, len(counts), _NUM_RANKS).round().astype(np.int64))
    return [{"n": n, "rank": rank, "count": counts[rank - 1]} for rank in ranks.tolist()]


def _frequencies(text: CorpusStream, n: int, best: Rows) -> TableRows:
    """Return the most frequent n-grams of an order, by their rows, as text."""
    table = text.counts.table(n)
    ngrams = zip(table.tokens_of(best).tolist(), table.counts[best].tolist(), strict=True)
    return [
        {
            "n": n,
            "rank": rank,
            "ngram": text.corpus.vocab.join(map(text.tokens.__getitem__, ngram)),
            "count": count,
        }
        for rank, (ngram, count) in enumerate(ngrams, start=1)
    ]


def most_frequent(
    ids: Ids, counts: NgramCounts, order: int, highest: NDArray[np.integer]
) -> tuple[Rows, Rows]:
    """Return the rows of the most frequent n-grams of an order, ties by first appearance, and the
    positions of these appearances.

    ``ids`` are the text that was counted. ``highest`` are the counts of these n-grams, falling.
    """
    table = counts.table(order)
    candidates = np.flatnonzero(table.counts >= highest[-1])
    # Tables of the candidates and their prefixes alone, without counts: in these it is fast to look
    # up a whole text.
    ngrams, vocab_size = table.tokens_of(candidates), counts.vocab_size
    rows = ngrams[:, 0]
    arrays = [(np.arange(vocab_size), np.bincount(rows, minlength=vocab_size))]
    for tokens in ngrams.T[1:]:
        keys, rows = np.unique(rows * vocab_size + tokens, return_inverse=True)
        arrays.append((keys, keys))
    firsts = first_positions(ids, NgramCounts(arrays), order)[rows]
    ranked = np.lexsort((firsts, -table.counts[candidates].astype(np.int64)))[: len(highest)]
    return candidates[ranked], firsts[ranked]


def _head(text: CorpusStream, ranked: Rows) -> dict[str, Any]:
    """Return the first tokens of the text's vocabulary, and the beginning of the text encoded with
    it.

    ``ranked`` are the ids of the vocabulary's tokens.
    """
    ranks = np.zeros(len(text.tokens), np.int64)
    ranks[ranked] = np.arange(1, len(ranked) + 1)
    first_ids = ranks[text.ids[:_FIRST_IDS]].tolist()
    return {
        "tokens": [UNKNOWN, *(text.tokens[index] for index in ranked[: _HEAD - 1])],
        # DVC cannot read a plot file with an empty list in it.
        "first_ids": first_ids or None,
    }
