"""Counting n-grams, against a Counter."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.ngrams.corpus_stream import join_splits
from seqlm.ngrams.counts.counting import Chunking, count_ngrams
from seqlm.ngrams.counts.kernels import find_children
from seqlm.ngrams.most_frequent import by_frequency
from seqlm.ngrams.statistics import frequent_ngrams, summary, zipf_fits
from seqlm.preprocess.cleaning import clean_line
from seqlm.vocab.corpus_building import SPLITS, build_corpus
from seqlm.vocab.encoded import load_corpus

texts = st.lists(st.integers(0, 4), min_size=3, max_size=60)


@given(texts, st.integers(1, 3))
def test_counts_equal_those_of_a_counter(text: list[int], max_order: int) -> None:
    counts = count_ngrams(np.array(text), 5, max_order)
    for n in range(1, max_order + 1):
        table = counts.table(n)
        expected = Counter(tuple(text[place : place + n]) for place in range(len(text) - n + 1))
        rows = np.flatnonzero(table.counts)
        found = {
            tuple(gram): count
            for gram, count in zip(counts.tokens_of(n, rows).tolist(), table.counts[rows].tolist(), strict=True)
        }
        assert found == expected
        # Ties by first appearance: that is the order of a Counter.
        ranked = [tuple(gram) for gram in counts.tokens_of(n, by_frequency([np.array(text)], counts, n, 1000)).tolist()]
        assert ranked == [gram for gram, _ in expected.most_common()]


@given(texts, st.integers(2, 4))
def test_packed_and_ranked_keys_count_alike(text: list[int], max_order: int) -> None:
    if len(text) < max_order:
        return
    packed = count_ngrams(np.array(text), 5, max_order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqlm.ngrams.counts.counting._KEY_BITS", 0)
        ranked = count_ngrams(np.array(text), 5, max_order)
    assert packed.starts == ranked.starts
    for one, other in zip(packed.tables, ranked.tables, strict=True):
        assert (one.keys == other.keys).all()
        assert (one.counts == other.counts).all()


@given(texts)
def test_rows_lead_to_prefixes_suffixes_and_totals(text: list[int]) -> None:
    counts = count_ngrams(np.array(text), 5, 3)
    for n in (2, 3):
        rows = np.arange(len(counts.table(n).keys))
        grams = counts.tokens_of(n, rows)
        assert (counts.tokens_of(n - 1, counts.prefixes(n)) == grams[:, :-1]).all()
        assert (counts.tokens_of(n - 1, counts.suffixes(n)) == grams[:, 1:]).all()
        assert counts.context_totals[n - 1].sum() == len(text) - n + 1


@given(texts, st.integers(2, 5))
def test_large_tables_are_searched_as_small_ones_are(text: list[int], max_order: int) -> None:
    """Those of many rows by a compiled loop, among the children of a prefix, block by block on threads."""
    if len(text) < max_order:
        return
    small, large = (count_ngrams(np.array(text), 5, max_order) for _ in range(2))
    expected = [small.suffixes(n).tolist() for n in range(1, max_order + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqlm.ngrams.counts.count_tables._LARGE", 1)
        patch.setattr("seqlm.ngrams.counts.count_tables.BLOCK_ROWS", 3)
        assert [large.suffixes(n).tolist() for n in range(1, max_order + 1)] == expected


def test_what_is_not_among_the_children_of_a_prefix_has_no_row() -> None:
    keys, firsts = np.array([0, 2, 7, 9, 15]), np.array([0, 2, 4, 4, 5])
    prefixes, lasts = np.array([0, 0, 0, 1, 1, 1, 2, 3, 3, 1]), np.array([0, 1, 2, 1, 2, 4, 4, 0, 3, 2])
    assert find_children(keys, firsts, prefixes, lasts, 5).tolist() == [0, -1, 1, -1, 2, 3, -1, 4, -1, 2]


def test_unseen_ngrams_have_no_row() -> None:
    counts = count_ngrams(np.array([0, 1, 2, 0, 1]), 4, 3)
    rows = counts.rows_of(np.array([0, 1, 3, 0, 1, 2]), 3)
    # 01 and 12 were seen, 13, 30 were not; of the trigrams only 012 was.
    assert (rows[1] >= 0).tolist() == [True, False, False, True, True]
    assert (rows[2] >= 0).tolist() == [False, False, False, True]


def test_a_high_order_over_a_large_vocabulary_fits_into_keys() -> None:
    # 10 tokens of 20 bits would be 200 bits: far more than one key of packed tokens holds.
    text = np.random.default_rng(0).integers(0, 2**20, 500)
    twice = np.concatenate([text, text])
    counts = count_ngrams(twice, 2**20, 10)
    assert counts.table(10).counts.max() == 2
    assert (counts.tokens_of(10, by_frequency([twice], counts, 10, 1))[0] == text[:10]).all()


def test_a_text_shorter_than_the_order_is_an_error() -> None:
    with pytest.raises(DataError, match="2 tokens are too few for n-grams of order 3"):
        count_ngrams(np.array([1, 2]), 3, 3)


def test_the_book_has_the_ngrams_of_the_book(book: Path, tmp_path: Path) -> None:
    lines = [clean_line(line) + "\n" for line in book.read_text(encoding="utf-8").splitlines()]
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for start, path in zip((0, 2000, 3000), paths.values(), strict=True):
        path.write_text("".join(lines[start : start + (2000 if start == 0 else 1000)]))
    build_corpus(paths, tmp_path, "word", "", 0, [])
    whole = join_splits(load_corpus(tmp_path), Chunking(2**30, tmp_path))
    assert summary(whole, zipf_fits(whole, 2), 0.0)["distinct"] == {"1": 4579, "2": 20_234, "3": 29_882}
    frequent = frequent_ngrams(whole, 3)
    assert frequent["ngram"].tolist() == [
        "the", "i", "and", "of the", "in the", "i had", "the time traveller", "the time machine", "the medical man",
    ]  # fmt: skip
    assert frequent["count"].tolist() == [2261, 1267, 1245, 309, 169, 130, 59, 30, 24]
