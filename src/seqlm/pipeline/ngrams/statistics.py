"""Descriptive tables of a text: frequent n-grams, Zipf's law (8.3.7), and the growth of the
vocabulary.

They describe the whole text, across the borders of the splits, with a vocabulary of its own; models
see only train.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, log
from seqlm.core.threads import imap
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Rows
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.ngrams.engines import choose_engine
from seqlm.vocab.corpus import EncodedCorpus
from seqlm.vocab.vocabulary import UNKNOWN

# What the tables show, beside the settings.
_MAX_ORDER = 3
"""The highest order of the n-grams that describe a text."""
_HEAD, _FIRST_IDS, _NUM_RANKS = 10, 64, 400
"""Tokens of the vocabulary, ids of the text, and ranks at most, that are shown."""
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)
_Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors of a normal distribution."""

_BLOCK = 1 << 20
"""Tokens that are looked up at once, so that a large text needs little memory."""
_MAX_ALPHA = 20.0
_LAST_STEP = 1e-12
"""Newton's method squares the error with each step, so none follows one as small as this."""
_MAX_STEPS = 100


def fit_zipf(counts: NDArray[Any], min_count: int = 2) -> dict[str, float]:
    """Fit the exponent of n_i proportional to i^-alpha to at least two counts in falling order, in
    two ways.

    The ranks whose count reaches ``min_count`` are fitted, or all if fewer than two do. Returns

    - ``max_rank``: the last rank that was fitted
    - ``alpha_least_squares``: slope of the line through log rank and log count, as in the book's
    figures, sign reversed
    - ``intercept``: natural logarithm of the line's count at rank 1
    - ``alpha_likelihood``: maximum likelihood estimate, if each token is an independent draw from
    p(i) proportional to
      i^-alpha
    - ``alpha_low`` and ``alpha_high``: its 95 % interval from its Fisher information; too narrow,
    because tokens are
      dependent
    - ``share_once``: share of the distinct n-grams that occur once
    """
    max_rank = int(np.count_nonzero(counts >= min_count))
    max_rank = max_rank if max_rank >= 2 else len(counts)
    used = counts[:max_rank].astype(np.float64)
    x = np.log(np.arange(1, max_rank + 1))
    # Divided by the last, equal counts have logarithms of 0 and a slope of exactly 0.
    y, centred = np.log(used / used[-1]), x - x.mean()
    slope = float((centred * y).sum() / (centred**2).sum())
    # The mean log rank is all that the likelihood needs to know of the tokens.
    total = float(used.sum())
    alpha, variance = _most_likely_alpha(x, float((used * x).sum()) / total)
    half_width = _Z_95 / math.sqrt(total * variance)
    return {
        "max_rank": max_rank,
        "alpha_least_squares": -slope,
        "intercept": float(y.mean() + math.log(used[-1]) - slope * x.mean()),
        "alpha_likelihood": alpha,
        "alpha_low": alpha - half_width,
        "alpha_high": alpha + half_width,
        "share_once": float(np.mean(counts == 1)),
    }


def _most_likely_alpha(log_ranks: Floats, wanted: float) -> tuple[float, float]:
    """Return the alpha whose mean log rank under p(i) proportional to i^-alpha is ``wanted``, and
    the variance there.

    Newton's method: the mean's derivative is minus the variance.
    """
    alpha = 1.0
    for _ in range(_MAX_STEPS):
        weights = np.exp(-alpha * log_ranks)
        weights /= weights.sum()
        mean = float((weights * log_ranks).sum())
        variance = float((weights * log_ranks**2).sum()) - mean**2
        step = (mean - wanted) / variance
        alpha = min(alpha + step, _MAX_ALPHA)
        if abs(step) <= _LAST_STEP:
            break
    return alpha, variance


def vocabulary_growth(
    firsts: NDArray[np.int64], num_tokens: int, num_points: int = 60
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return text lengths, distinct tokens up to each, and Heaps' exponent beta.

    ``firsts`` has the position at which each distinct token first occurs in a text of
    ``num_tokens`` tokens. Heaps' law says that distinct(N) is proportional to N^beta; beta is the
    slope of the line through the logarithms, without the first twentieth of the points.
    """
    lengths = np.unique(np.geomspace(1, num_tokens, num_points).astype(np.int64))
    distinct = np.searchsorted(np.sort(firsts), lengths).astype(np.int64)
    used = slice(len(lengths) // 20, None)
    # Divided by the last, equal numbers have logarithms of 0 and a slope of exactly 0.
    logs = log(lengths[used]), log(distinct[used] / distinct[-1])
    return lengths, distinct, float(np.polyfit(*logs, 1)[0]) if len(lengths) > 2 else math.nan


@dataclass(frozen=True)
class CorpusStream:
    """A whole text as ids that tell all tokens apart, and its n-gram counts over these ids."""

    corpus: EncodedCorpus
    tokens: list[str]
    """The token of each id: first those of train's vocabulary, of which ``<unk>`` never occurs,
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


NOWHERE = int(np.iinfo(np.int64).max)


def first_positions(ids: Ids, counts: NgramCounts, order: int) -> Rows:
    """Return the position at which each n-gram of an order first occurs in a stream;
    :data:`NOWHERE` if it does not.

    The search ends where all have occurred, so it is fast if few, frequent n-grams are counted.
    """
    firsts = np.full(len(counts.table(order)), NOWHERE)
    for start in range(0, len(ids) - order + 1, _BLOCK):
        rows = counts.rows_of(ids[start : start + _BLOCK + order - 1], order)[-1]
        # The last one first: of several assignments to one place, the last one holds.
        new = np.flatnonzero((rows >= 0) & (firsts[rows] == NOWHERE))[::-1]
        firsts[rows[new]] = new + start
        if NOWHERE not in firsts:
            break
    return firsts


TableRows = list[dict[str, Any]]


def describe(text: CorpusStream, num_frequent: int = 100) -> dict[str, TableRows | dict[str, Any]]:
    """Return the tables of a text by name: rows for CSV, mappings for JSON."""
    orders = range(1, text.counts.max_order + 1)
    frequencies = imap(lambda n: _frequencies(text, n, num_frequent), orders)
    falling = dict(
        zip(orders, imap(lambda n: _falling(text.counts.table(n).counts), orders), strict=True)
    )
    fits = imap(lambda counts: fit_zipf(counts) if len(counts) >= 2 else None, falling.values())
    ranked = most_frequent(text.ids, text.counts, 1, len(text.tokens))
    num_tokens, vocab_size = len(text.ids), len(ranked) + 1  # with <unk>
    firsts = first_positions(text.ids, text.counts, 1)[ranked]
    lengths, growth, beta = vocabulary_growth(firsts, num_tokens)
    return {
        "frequencies": [row for of_order in frequencies for row in of_order],
        "zipf": [
            {"n": n, "rank": rank, "count": counts[rank - 1]}
            for n, counts in falling.items()
            # As many as draw a curve on a logarithmic axis.
            for rank in np.unique(np.geomspace(1, len(counts), _NUM_RANKS).round().astype(np.int64))
        ],
        "growth": [
            {"tokens": tokens, "distinct": seen}
            for tokens, seen in zip(lengths, growth, strict=True)
        ],
        "min_freq": _min_freq_table(falling[1]),
        "storage": [
            {
                "n": n,
                "full_table": vocab_size**n,
                "seen": len(counts),
                "share": len(counts) / vocab_size**n,
            }
            for n, counts in falling.items()
        ],
        "summary": {
            "tokens": num_tokens,
            "vocabulary_size": vocab_size,
            "distinct": {str(n): len(counts) for n, counts in falling.items()},
            "zipf": {str(n): fit for n, fit in zip(orders, fits, strict=True) if fit is not None},
            "heaps_beta": None if np.isnan(beta) else beta,
        },
        "head": _head(text, ranked),
    }


def _falling(counts: NDArray[np.integer]) -> NDArray[Any]:
    """Return the counts by falling size, without those of 0."""
    # The smallest type: a large text has tens of millions of distinct n-grams.
    return np.sort(counts[counts > 0].astype(np.min_scalar_type(counts.max(initial=0))))[::-1]


def _frequencies(text: CorpusStream, n: int, limit: int) -> TableRows:
    """Return the most frequent n-grams of an order."""
    table, best = text.counts.table(n), most_frequent(text.ids, text.counts, n, limit)
    ngrams = [
        text.corpus.vocab.join(text.tokens[index] for index in ngram)
        for ngram in table.tokens_of(best)
    ]
    ranked = enumerate(zip(ngrams, table.counts[best], strict=True), start=1)
    return [
        {"n": n, "rank": rank, "ngram": ngram, "count": count} for rank, (ngram, count) in ranked
    ]


def most_frequent(ids: Ids, counts: NgramCounts, order: int, limit: int) -> Rows:
    """Return the rows of the ``limit`` most frequent n-grams of an order, ties by first appearance.

    ``ids`` are the text that was counted. Rows that never occur are left out.
    """
    table = counts.table(order)
    smallest = np.partition(table.counts, -min(limit, len(table)))[-min(limit, len(table))]
    candidates = np.flatnonzero(table.counts >= max(smallest, 1))
    # Tables of the candidates and their prefixes alone: in these it is fast to look up a whole
    # text.
    ngrams, vocab_size = table.tokens_of(candidates), counts.vocab_size
    rows = ngrams[:, 0]
    arrays = [(np.arange(vocab_size), np.bincount(rows, minlength=vocab_size))]
    for tokens in ngrams.T[1:]:
        keys, rows, sizes = np.unique(
            rows * vocab_size + tokens, return_inverse=True, return_counts=True
        )
        arrays.append((keys, sizes))
    firsts = first_positions(ids, NgramCounts(arrays), order)[rows]
    return candidates[np.lexsort((firsts, -table.counts[candidates].astype(np.int64)))][:limit]


def _min_freq_table(counts: NDArray[np.integer]) -> TableRows:
    """Return the vocabulary's size against ``min_freq`` (exercise 8.2-2), ``<unk>`` included."""
    return [
        {
            "min_freq": least,
            "vocabulary_size": int((counts >= least).sum()) + 1,
            "unknown_share": float(counts[counts < least].sum() / counts.sum()),
        }
        for least in _MIN_FREQS
    ]


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
