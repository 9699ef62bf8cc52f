"""Descriptive tables of a text: frequent n-grams, Zipf's law (8.3.7), and the growth of the vocabulary.

They describe the whole text, across the borders of the splits, with a vocabulary of its own; models see only train.
"""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, exp, log
from seqlm.core.threads import default_threads, imap
from seqlm.ngrams.counts.count_tables import Ids, IdStream, NgramCounts, Rows
from seqlm.ngrams.counts.counting import Chunking, NgramCounter, PackedCounts
from seqlm.vocab.corpus import EncodedCorpus
from seqlm.vocab.vocabulary import UNKNOWN

# What the tables show, beside the settings.
_MAX_ORDER = 3
"""The highest order of the n-grams that describe a text."""
_HEAD, _FIRST_IDS = 10, 64
"""Tokens of the vocabulary, and ids of the text, that are shown."""
_MIN_FREQS = (1, 2, 3, 5, 10, 20, 50, 100)
_Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors of a normal distribution."""

_BLOCK = 1 << 20
"""Tokens that are read, or ranks that are worked on, at once, so that a large text needs little memory."""
_MAX_ALPHA = 20.0
_LAST_STEP = 1e-8
"""Newton's method squares the error with each step, so none follows one as small as this."""
_MAX_STEPS = 100


@dataclass(frozen=True)
class ZipfFit:
    """The exponent of n_i proportional to i^-alpha, fitted in two ways over one range of ranks."""

    max_rank: int
    """The last rank that was fitted: ranks up to it have at least the count asked for."""
    alpha_least_squares: float
    """Slope of the line through log rank and log count, as in the book's figures, sign reversed."""
    intercept: float
    """Natural logarithm of the line's count at rank 1."""
    alpha_likelihood: float
    """Maximum likelihood estimate, if each token is an independent draw from p(i) proportional to i^-alpha."""
    alpha_low: float
    alpha_high: float
    """95 % interval of ``alpha_likelihood`` from its Fisher information; too narrow, because tokens are dependent."""
    share_once: float
    """Share of the distinct n-grams that occur once."""


def fit_zipf(counts: NDArray[Any], min_count: int) -> ZipfFit:
    """Fit Zipf's exponent to at least two counts in falling order, over the ranks whose count reaches ``min_count``.

    If fewer than two ranks reach it, all ranks are fitted.
    """
    max_rank = int(np.count_nonzero(counts >= min_count))
    max_rank = max_rank if max_rank >= 2 else len(counts)
    sums = np.zeros(6)
    for start in range(0, max_rank, _BLOCK):
        part = counts[start : min(start + _BLOCK, max_rank)].astype(np.float64)
        x, y = _log_ranks(start, start + len(part)), log(part)
        sums += [each.sum() for each in (x, y, x * x, x * y, part, part * x)]
    mean_x, mean_y, mean_xx, mean_xy = sums[:4] / max_rank
    slope = float((mean_xy - mean_x * mean_y) / (mean_xx - mean_x**2))
    # The mean log rank is all that the likelihood needs to know of the tokens.
    total = float(sums[4])
    alpha = _most_likely_alpha(max_rank, float(sums[5]) / total)
    half_width = _Z_95 / math.sqrt(total * _moments(max_rank, alpha)[1])
    return ZipfFit(
        max_rank=max_rank,
        alpha_least_squares=-slope,
        intercept=float(mean_y - slope * mean_x),
        alpha_likelihood=alpha,
        alpha_low=alpha - half_width,
        alpha_high=alpha + half_width,
        share_once=float(np.mean(counts == 1)),
    )


def _log_ranks(start: int, stop: int) -> Floats:
    # By our own function: if all n-grams are equally frequent, the exponents are rounding errors, which are reported.
    return log(np.arange(start + 1, stop + 1))


def _most_likely_alpha(max_rank: int, wanted: float) -> float:
    """Solve for the alpha whose mean log rank is ``wanted``; the mean falls as alpha grows.

    Newton's method: the mean's derivative is minus the variance. A step that would leave the interval that contains
    the solution halves the interval instead.
    """
    low, high = 0.0, _MAX_ALPHA
    alpha = 1.0
    for _ in range(_MAX_STEPS):
        mean, variance = _moments(max_rank, alpha)
        low, high = (alpha, high) if mean > wanted else (low, alpha)
        step = (mean - wanted) / variance if variance > 0 else math.inf
        if abs(step) <= _LAST_STEP:
            return alpha + step
        alpha = alpha + step if low < alpha + step < high else (low + high) / 2
    return alpha


def _moments(max_rank: int, alpha: float) -> tuple[float, float]:
    """Return mean and variance of the log rank under p(i) proportional to i^-alpha, i up to ``max_rank``."""

    def sums_from(start: int) -> Floats:
        logs = _log_ranks(start, min(start + _BLOCK, max_rank))
        weights = exp(-alpha * logs)
        first = weights * logs
        return np.array([weights.sum(), first.sum(), (first * logs).sum()])

    starts = range(0, max_rank, _BLOCK)
    sums = sum(imap(sums_from, starts, min(default_threads(), len(starts))), np.zeros(3))
    mean = sums[1] / sums[0]
    return float(mean), float(max(sums[2] / sums[0] - mean**2, 0.0))


def vocabulary_growth(
    firsts: NDArray[np.int64], num_tokens: int, num_points: int = 60
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return text lengths, distinct tokens up to each, and Heaps' exponent beta.

    ``firsts`` has the position at which each distinct token first occurs in a text of ``num_tokens`` tokens. Heaps' law
    says that distinct(N) is proportional to N^beta; beta is the slope of the line through the logarithms, without the
    first twentieth of the points.
    """
    lengths = np.unique(np.geomspace(1, num_tokens, num_points).astype(np.int64))
    distinct = np.searchsorted(np.sort(firsts), lengths).astype(np.int64)
    used = slice(len(lengths) // 20, None)
    # Divided by the last, equal numbers have logarithms of 0 and a slope of exactly 0.
    logs = log(lengths[used]), log(distinct[used] / distinct[-1])
    return lengths, distinct, float(np.polyfit(*logs, 1)[0]) if len(lengths) > 2 else math.nan


def thin_ranks(num_ranks: int, num_points: int = 400) -> NDArray[np.int64]:
    """Return ranks, from 1, that draw a rank-frequency curve on a logarithmic axis."""
    return np.unique(np.geomspace(1, num_ranks, num_points).round().astype(np.int64))


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

    ``train`` has the n-grams of the training split. They are not counted again if all its tokens are known and both
    texts are packed in the same way.
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


TableRows = list[dict[str, Any]]


def describe(text: CorpusStream, zipf_min_count: int, num_frequent: int) -> dict[str, TableRows | dict[str, Any]]:
    """Return the tables of a text by name: rows for CSV, mappings for JSON."""
    orders = range(1, text.counts.max_order + 1)
    frequencies = imap(lambda n: _frequencies(text, n, num_frequent), orders)
    ranked = dict(zip(orders, imap(lambda n: _ranked(text.counts.table(n).counts), orders), strict=True))
    fits = imap(lambda counts: fit_zipf(counts, zipf_min_count) if len(counts) >= 2 else None, ranked.values())
    num_tokens = int(text.counts.table(1).counts.sum())
    lengths, growth, beta = vocabulary_growth(text.first_positions[text.ranked], num_tokens)
    return {
        "frequencies": list(chain.from_iterable(frequencies)),
        "zipf": [
            {"n": n, "rank": rank, "count": counts[rank - 1]}
            for n, counts in ranked.items()
            for rank in thin_ranks(len(counts))
        ],
        "growth": [{"tokens": tokens, "distinct": seen} for tokens, seen in zip(lengths, growth, strict=True)],
        "min_freq": _min_freq_table(text.counts.table(1).counts[text.ranked]),
        "storage": [
            {"n": n, "full_table": text.vocab_size**n, "seen": len(counts), "share": len(counts) / text.vocab_size**n}
            for n, counts in ranked.items()
        ],
        "summary": {
            "tokens": num_tokens,
            "vocabulary_size": text.vocab_size,
            "distinct": {str(n): len(counts) for n, counts in ranked.items()},
            "zipf": {str(n): asdict(fit) for n, fit in zip(orders, fits, strict=True) if fit is not None},
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


def _frequencies(text: CorpusStream, n: int, limit: int) -> TableRows:
    """Return the most frequent n-grams of an order."""
    rows: TableRows = []
    table = text.counts.table(n)
    best = most_frequent(text.ids, text.counts, n, limit)
    for rank, (row, ids) in enumerate(zip(best, table.tokens_of(best), strict=True), start=1):
        ngram = text.corpus.vocab.join(text.tokens[index] for index in ids)
        rows.append({"n": n, "rank": rank, "ngram": ngram, "count": int(table.counts[row])})
    return rows


def most_frequent(ids: IdStream, counts: NgramCounts, order: int, limit: int) -> Rows:
    """Return the rows of the ``limit`` most frequent n-grams of an order, ties by first appearance.

    ``ids`` are the text that was counted. Rows that never occur are left out.
    """
    table = counts.table(order)
    smallest = np.partition(table.counts, -min(limit, len(table)))[-min(limit, len(table))]
    candidates = np.flatnonzero(table.counts >= max(smallest, 1))
    # Tables of the candidates and their prefixes alone: in these it is fast to look up a whole text.
    ngrams, vocab_size = table.tokens_of(candidates), counts.vocab_size
    rows = ngrams[:, 0]
    arrays = [(np.arange(vocab_size), np.bincount(rows, minlength=vocab_size))]
    for tokens in ngrams.T[1:]:
        keys, rows, sizes = np.unique(rows * vocab_size + tokens, return_inverse=True, return_counts=True)
        arrays.append((keys, sizes))
    firsts = first_positions(ids, NgramCounts(arrays), order)[rows]
    return candidates[np.lexsort((firsts, -table.counts[candidates].astype(np.int64)))][:limit]


def _min_freq_table(counts: NDArray[np.integer]) -> TableRows:
    """Return the vocabulary's size against ``min_freq`` (exercise 8.2-2), ``<unk>`` included."""
    rows: TableRows = []
    for min_freq in _MIN_FREQS:
        kept = counts >= min_freq
        share = float(counts[~kept].sum() / counts.sum())
        rows.append({"min_freq": min_freq, "vocabulary_size": int(kept.sum()) + 1, "unknown_share": share})
    return rows


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
