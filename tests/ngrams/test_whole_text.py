"""The whole text from its encoded splits: the same vocabulary, ids and tables as from the text itself."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import ParamsError
from seqlm.ngrams import first_places, whole_text
from seqlm.ngrams.counting import Chunking
from seqlm.ngrams.statistics import frequent_ngrams, growth_table, head
from seqlm.ngrams.whole_text import join_splits
from seqlm.vocab.encoded import load_corpus
from seqlm.vocab.streams import SPLITS, build_corpus
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
)
def test_the_whole_is_what_plain_python_reads(
    texts: list[str], kind: Kind, separator: str, min_freq: int, reserved: list[str], block: int
) -> None:
    texts = ["the sea\n" + texts[0], *texts[1:]]
    tokens, ids = reference.whole_text(texts, kind, separator)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_text, "BLOCK", block)
        patch.setattr(first_places, "BLOCK", block)
        folder = Path(name)
        paths = {split: folder / f"{split}.txt" for split in SPLITS}
        for path, text in zip(paths.values(), texts, strict=True):
            path.write_bytes(text.encode())
        try:
            build_corpus(paths, folder / "corpus", kind, separator, min_freq, reserved)
        except ParamsError:
            return  # a min_freq that leaves nothing
        found = join_splits(load_corpus(folder / "corpus"), Chunking(1 << 30, folder))
        assert found.tokens == tokens
        assert found.ids.tolist() == ids.tolist()
        assert found.ids.dtype == np.min_scalar_type(len(tokens) - 1)
        assert found.counts.vocab_size == len(tokens)
        assert found.firsts.tolist() == [ids.tolist().index(number) for number in range(1, len(tokens))]
        assert head(found)["first_line"] == ids[: len(reference.tokens("the sea", kind, separator))].tolist()
        growth, _ = growth_table(found)
        assert growth["distinct"].tolist() == [len(set(ids[:length].tolist())) for length in growth["tokens"]]
        best = frequent_ngrams(found, 3)
        assert best[best["n"] == 1]["ngram"].tolist() == tokens[1:4]


def test_a_separator_between_splits_counts_where_no_split_has_one(tmp_path: Path) -> None:
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in paths.values():
        path.write_text("ab\n")
    build_corpus(paths, tmp_path, "char", "\n", 0, [])
    found = join_splits(load_corpus(tmp_path), Chunking(1 << 30, tmp_path))
    # ab, line end, ab, line end, ab: a and b three times each, the line end twice.
    assert found.tokens == ["<unk>", "a", "b", "\n"]
    assert found.ids.tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
