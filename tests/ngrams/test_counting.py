"""Tables of n-grams against a Counter and plain NumPy."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.ngrams.statistics import most_frequent

WIDE = 1 << 16
"""A vocabulary of which only three tokens fit into one packed key."""
texts = st.lists(st.integers(0, 4), min_size=3, max_size=60)


def counted(counts: NgramCounts, order: int) -> dict[tuple[int, ...], int]:
    table = counts.table(order)
    rows = np.flatnonzero(table.counts)
    return dict(zip(map(tuple, table.tokens_of(rows).tolist()), table.counts[rows].tolist(), strict=True))


@given(texts, st.integers(1, 5), st.sampled_from([5, WIDE]))
def test_counts_equal_those_of_a_counter(text: list[int], max_order: int, vocab_size: int) -> None:
    assume(len(text) >= max_order)
    text = [vocab_size - 1 - token for token in text]  # the last tokens: they have the largest keys
    ids = np.array(text)
    counts = count_ngrams(ids, vocab_size, max_order)
    for n in range(1, max_order + 1):
        expected = Counter(tuple(text[start : start + n]) for start in range(len(text) - n + 1))
        assert counted(counts, n) == expected
        assert (counts.table(n).keys[1:] > counts.table(n).keys[:-1]).all()
        assert counts.table(n).tokens_of(np.array(counts.starts[n - 1 : n])).tolist() == [text[:n]]
        # Ties by first appearance: that is the order of a Counter.
        ngrams, highest = zip(*expected.most_common(3), strict=True)
        rows, firsts = most_frequent(ids, counts, n, np.array(highest))
        assert list(map(tuple, counts.table(n).tokens_of(rows).tolist())) == list(ngrams)
        assert [tuple(text[start : start + n]) for start in firsts] == list(ngrams)


@pytest.mark.parametrize(("num_tokens", "vocab_size"), [(50, 5), (1_300_000, 300), (1_300_000, 3000)])
def test_rows_lead_to_prefixes_suffixes_and_totals(num_tokens: int, vocab_size: int) -> None:
    """Large tables are made and worked on in blocks, on threads, in compiled loops; few keys fit into 32 bits."""
    text = np.random.default_rng(0).integers(0, vocab_size, num_tokens)
    # Two rare tokens end up in neighbouring rows, of which the second has a smaller suffix after the same prefix.
    text = np.append(text, [vocab_size, 0, 2, vocab_size + 1, 0, 1])
    counts = count_ngrams(text, vocab_size + 2, 3)
    for n in (2, 3):
        table, below = counts.table(n), counts.table(n - 1)
        ngrams = table.tokens_of(np.arange(len(table)))
        prefixes, lasts = table.split()
        assert (below.tokens_of(prefixes) == ngrams[:, :-1]).all()
        assert (lasts == ngrams[:, -1]).all()
        assert (below.tokens_of(table.suffix_rows.astype(np.int64)) == ngrams[:, 1:]).all()
        assert (table.context_totals == np.bincount(prefixes, table.counts, len(below))).all()
        shuffled = np.random.default_rng(1).permutation(len(table))
        assert (table.find(prefixes[shuffled], lasts[shuffled]) == shuffled).all()
        tokens, rows = table.continuations(int(prefixes[-1]))
        assert tokens.tolist() == lasts[prefixes == prefixes[-1]].tolist()
        assert rows.stop == len(table)


def test_unseen_ngrams_have_no_row() -> None:
    counts = count_ngrams(np.array([0, 1, 2, 0, 1]), 4, 3)
    _, bigrams, trigrams = counts.rows_of(np.array([0, 1, 3, 0, 1, 2]), 3)
    # 01 and 12 were seen, 13, 30 were not; of the trigrams only 012 was.
    assert (bigrams >= 0).tolist() == [True, False, False, True, True]
    assert (trigrams >= 0).tolist() == [False, False, False, True]

    # A text that is shorter than the order is an error.
    with pytest.raises(DataError, match="2 tokens are too few for n-grams of order 3"):
        count_ngrams(np.array([1, 2]), 3, 3)
