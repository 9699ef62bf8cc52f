"""Statistics of the whole text from its encoded splits; Zipf's and Heaps' laws on data whose exponents are known."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from encoded_corpora import write_splits
from seqlm.core.errors import ParamsError
from seqlm.pipeline.ngrams import statistics
from seqlm.pipeline.ngrams.statistics import CorpusStream, describe, fit_zipf, join_splits, vocabulary_growth
from seqlm.vocab.corpus import build_corpus, load_corpus
from seqlm.vocab.kinds import Kind

words = st.sampled_from(["a", "b", "<unk>", "the", "sea", "é", "漢字", "<pad>"])
lines = st.lists(words, max_size=4).map(" ".join)
contents = st.lists(
    st.lists(lines, max_size=5).map(lambda found: "".join(line + "\n" for line in found)), min_size=3, max_size=3
)


def whole_text(folder: Path, texts: list[str], kind: Kind, separator: str = "", min_freq: int = 0) -> CorpusStream:
    build_corpus(write_splits(folder, *texts), folder / "corpus", kind, separator, min_freq)
    return join_splits(load_corpus(folder / "corpus"), None, folder)


@given(
    contents,
    st.sampled_from(["char", "word"]),
    st.sampled_from(["", " ", "\n"]),
    st.integers(0, 4),
    st.sampled_from([1, 3, 1 << 20]),
)
def test_the_whole_is_what_plain_python_reads(
    texts: list[str], kind: Kind, separator: str, min_freq: int, block: int
) -> None:
    texts = ["the sea\n" + texts[0], *texts[1:]]
    tokens, ids = reference.whole_text(texts, kind, separator)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_BLOCK", block)
        try:
            found = whole_text(Path(name), texts, kind, separator, min_freq)
        except ParamsError:
            return  # a min_freq that leaves nothing
        tables = describe(found, 5)
    assert (tables["summary"]["tokens"], tables["summary"]["vocabulary_size"]) == (len(ids), len(tokens))
    assert tables["head"]["tokens"] == tokens[:10]
    assert (tables["head"]["first_ids"] or []) == ids[:64].tolist()
    growth, frequencies = tables["growth"], tables["frequencies"]
    assert growth["distinct"].tolist() == [len(set(ids[:length].tolist())) for length in growth["tokens"]]
    joiner = "" if kind == "char" else " "
    for n in range(1, min(3, len(ids)) + 1):
        ngrams = Counter(tuple(ids[start : start + n].tolist()) for start in range(len(ids) - n + 1))
        expected = [(joiner.join(tokens[index] for index in ngram), count) for ngram, count in ngrams.most_common(5)]
        of_order = frequencies[frequencies["n"] == n]
        assert list(zip(of_order["ngram"], of_order["count"], strict=True)) == expected
        assert tables["summary"]["distinct"][str(n)] == len(ngrams)
        stored = tables["storage"].set_index("n").loc[n].to_dict()
        size = len(tokens) ** n
        assert stored == {"full_table": size, "seen": len(ngrams), "share": pytest.approx(len(ngrams) / size)}
    assert tables["min_freq"]["min_freq"].tolist() == [1, 2, 3, 5, 10, 20, 50, 100]
    for row in tables["min_freq"].itertuples():
        kept = [count for count in Counter(ids.tolist()).values() if count >= row.min_freq]
        assert (row.vocabulary_size, row.unknown_share) == (len(kept) + 1, pytest.approx(1 - sum(kept) / len(ids)))


@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.4])
def test_the_line_has_the_exponent_of_exact_counts(alpha: float) -> None:
    counts = np.round(1e7 * np.arange(1, 1001) ** -alpha).astype(np.int64)
    assert fit_zipf(counts, 1)["alpha_least_squares"] == pytest.approx(alpha, abs=1e-3)


def test_only_frequent_ngrams_are_fitted_and_equal_counts_have_an_exponent_of_exactly_0() -> None:
    fit = fit_zipf(np.array([8, 4, 2, 1, 1]))
    assert (fit["max_rank"], fit["share_once"]) == (3, 2 / 5)
    # An interval from the spread of repetitions would exclude the truth, so none is claimed.
    assert set(fit) == {"max_rank", "alpha_least_squares", "share_once"}
    assert fit_zipf(np.full(7, 3))["alpha_least_squares"] == 0


def test_the_exponent_of_growth_ignores_the_first_points() -> None:
    # "a a b ..." and "a b b ..." have different numbers of distinct tokens after two tokens, and nowhere else.
    rest = np.arange(3, 1000, 7)
    first, second = (vocabulary_growth(np.array([0, place, *rest]), 1000) for place in (1, 2))
    assert (first[0]["distinct"] != second[0]["distinct"]).to_numpy().nonzero()[0].tolist() == [1]
    assert first[1] == second[1]
    # The third of 46 lengths is none of the first twentieth.
    third, fourth = (vocabulary_growth(np.array([0, 1, place, *rest[3:]]), 1000) for place in (2, 3))
    assert third[1] != fourth[1]
