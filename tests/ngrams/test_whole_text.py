"""The whole text from its encoded splits: the same vocabulary, ids and tables as from the text itself."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import ParamsError
from seqlm.ngrams import corpus_stream as whole_text
from seqlm.ngrams.corpus_stream import join_splits, num_tokens_of
from seqlm.ngrams.counts.counting import Chunking, NgramCounter, count_ngrams
from seqlm.ngrams.statistics import frequent_ngrams, growth_table, head, ranked_counts
from seqlm.vocab.corpus_building import SPLITS, build_corpus
from seqlm.vocab.encoded import load_corpus
from seqlm.vocab.vocabulary import Kind

words = st.sampled_from(["a", "b", "<unk>", "the", "sea", "é", "漢字", "<pad>"])
lines = st.lists(words, max_size=4).map(" ".join)
contents = st.lists(
    st.lists(lines, max_size=5).map(lambda found: "".join(line + "\n" for line in found)), min_size=3, max_size=3
)


@given(
    contents,
    st.sampled_from(["char", "word"]),
    st.sampled_from(["", " ", "\n"]),
    st.integers(0, 4),
    st.lists(st.sampled_from(["<pad>", "sea", "e", "never"]), unique=True),
    st.sampled_from([1, 3, 1 << 20]),
    st.booleans(),
)
def test_the_whole_is_what_plain_python_reads(
    texts: list[str], kind: Kind, separator: str, min_freq: int, reserved: list[str], block: int, goes_on: bool
) -> None:
    texts = ["the sea\n" + texts[0], *texts[1:]]
    tokens, ids = reference.whole_text(texts, kind, separator)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_text, "BLOCK", block)
        folder = Path(name)
        paths = {split: folder / f"{split}.txt" for split in SPLITS}
        for path, text in zip(paths.values(), texts, strict=True):
            path.write_bytes(text.encode())
        try:
            vocab = build_corpus(paths, folder / "corpus", kind, separator, min_freq, reserved)
        except ParamsError:
            return  # a min_freq that leaves nothing
        corpus, chunking, train = load_corpus(folder / "corpus"), Chunking(1 << 30, folder), None
        if goes_on and len(corpus.splits["train"]) >= 3:
            counter = NgramCounter(
                corpus.splits["train"].ids, len(vocab), 3, chunking, num_tokens=num_tokens_of(corpus), keep=3
            )
            counter.count()
            train = counter.kept
        found = join_splits(corpus, chunking, train)
        assert (found.num_tokens, found.vocab_size) == (len(ids), len(tokens))
        names = [found.pieces.names[number] for number in found.ranked]
        assert names == tokens[1:]
        assert found.firsts.tolist() == [ids.tolist().index(number) for number in range(1, len(tokens))]
        assert head(found)["first_line"] == ids[: len(reference.tokens("the sea", kind, separator))].tolist()
        growth, _ = growth_table(found)
        assert growth["distinct"].tolist() == [len(set(ids[:length].tolist())) for length in growth["tokens"]]
        best = frequent_ngrams(found, 5)
        joiner = "" if kind == "char" else " "
        for n in range(1, min(3, len(ids)) + 1):
            grams = [tuple(ids[place : place + n].tolist()) for place in range(len(ids) - n + 1)]
            expected = [(joiner.join(tokens[i] for i in gram), count) for gram, count in Counter(grams).most_common()]
            of_order = best[best["n"] == n]
            assert list(zip(of_order["ngram"], of_order["count"], strict=True)) == expected[:5]
            assert len(ranked_counts(found, n)) == len(expected)


@pytest.mark.parametrize("memory", [1 << 20, 1 << 30], ids=["in chunks", "in memory"])
def test_what_was_counted_of_train_is_gone_on_from(memory: int, tmp_path: Path) -> None:
    """Sixty thousand words in train, and two thousand in val and in test, some of them new."""
    rng = np.random.default_rng(0)
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path, size in zip(paths.values(), (60_000, 2000, 2000), strict=True):
        path.write_text(" ".join(f"w{number}" for number in np.minimum(rng.zipf(1.3, size), 3000)) + "\n")
    vocab = build_corpus(paths, tmp_path / "corpus", "word", "", 0, [])
    corpus = load_corpus(tmp_path / "corpus")
    assert len(corpus.unknown_tokens) > 10
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    counter = NgramCounter(
        corpus.splits["train"].ids, len(vocab), 4, Chunking(memory, tmp_path), num_tokens=num_tokens_of(corpus), keep=3
    )
    of_train, expected = counter.count(), count_ngrams(corpus.splits["train"].ids, len(vocab), 4)
    assert [table.counts.tolist() for table in of_train.tables] == [table.counts.tolist() for table in expected.tables]
    assert counter.kept is not None
    went_on = join_splits(corpus, Chunking(memory, tmp_path / "a"), counter.kept)
    anew = join_splits(corpus, Chunking(memory, tmp_path / "b"))
    for ours, theirs in zip(went_on.counts.tables, anew.counts.tables, strict=True):
        assert np.array_equal(ours.keys, theirs.keys)
        assert np.array_equal(ours.counts, theirs.counts)


def test_a_separator_between_splits_counts_where_no_split_has_one(tmp_path: Path) -> None:
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in paths.values():
        path.write_text("ab\n")
    build_corpus(paths, tmp_path, "char", "\n", 0, [])
    found = join_splits(load_corpus(tmp_path), Chunking(1 << 30, tmp_path))
    # ab, line end, ab, line end, ab: a and b three times each, the line end twice.
    assert [found.pieces.names[number] for number in found.ranked] == ["a", "b", "\n"]
    assert np.concatenate(list(found.pieces.blocks())).tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
