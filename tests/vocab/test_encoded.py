"""Vocabularies and encoded splits equal those of plain Python, and with the unknown tokens they are the text."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import DataError, ParamsError
from seqlm.vocab import interning
from seqlm.vocab.corpus import SPLITS, build_corpus, load_corpus, load_split
from seqlm.vocab.hashing import HashedWordInterner
from seqlm.vocab.interning import CharInterner, Interner, ProvisionalIds, WordInterner
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.vocabulary import Kind
from subwords import write_splits

texts = st.lists(
    st.sampled_from(["", "a", "b c", "<unk> a", "漢字 é é", "the the sea", "a\u3000b\t", "  ", "😀"]), max_size=12
)
splits = st.lists(texts.map(lambda lines: "a b\n" + "".join(line + "\n" for line in lines)), min_size=3, max_size=3)
kinds = st.sampled_from(["char", "word"])
separators = st.sampled_from(["", " ", "\n"])
reserved_tokens = st.lists(st.sampled_from(["<pad>", "a", "sea", "漢"]), unique=True)


@given(
    splits, kinds, separators, st.integers(0, 3), reserved_tokens, st.sampled_from([1, 2, 7, 1 << 20]), st.booleans()
)
def test_a_corpus_equals_that_of_plain_python(
    contents: list[str], kind: Kind, separator: str, min_freq: int, reserved: list[str], block: int, compiled: bool
) -> None:
    streams = [reference.tokens(content, kind, separator) for content in contents]
    tokens, counts = reference.vocabulary(streams[0], min_freq, reserved)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(token_kind(kind)), "interned_bytes", block)
        patch.setattr(interning, "COMPILED_FROM_BYTES", 0 if compiled else 1 << 40)
        folder = Path(name)
        paths = write_splits(folder, *contents)
        if not any(counts[1:]):
            with pytest.raises(ParamsError, match=rf"vocab\.{kind}\.min_freq = {min_freq}: no {kind}"):
                build_corpus(paths, folder / "corpus", kind, separator, min_freq, reserved)
            assert list((folder / "corpus").iterdir()) == []
            return
        vocab = build_corpus(paths, folder / "corpus", kind, separator, min_freq, reserved)
        assert (vocab.tokens, vocab.counts) == (tokens, counts)
        corpus = load_corpus(folder / "corpus", kind)
        assert corpus.vocab == vocab
        for split, stream, content in zip(SPLITS, streams, contents, strict=True):
            ids = load_split(folder / "corpus", split)
            assert ids.tolist() == reference.encode(stream, tokens)
            assert ids.dtype == np.min_scalar_type(len(tokens) - 1)
            info = vocab.splits[split]
            assert (info.num_tokens, info.num_unknown) == (len(stream), np.count_nonzero(ids == 0))
            assert info.num_chars == len(reference.tokens(content, "char", separator))
            encoded = corpus.splits[split]
            assert len(encoded) == len(stream)
            for start, stop in [(0, None), (0, 3), (2, 5), (1, None)]:
                assert encoded.texts(start, stop) == stream[start:stop]
                distinct = encoded.distinct_ids(start, stop)
                assert [([*tokens, *corpus.unknown_tokens])[index] for index in distinct] == stream[start:stop]
                assert encoded.lengths(start, stop).tolist() == [len(token) for token in stream[start:stop]]


@pytest.mark.parametrize("make", [WordInterner, lambda: HashedWordInterner(2)], ids=["Python", "compiled"])
@given(st.lists(st.text(alphabet="ab \n\té漢", max_size=30), max_size=8))
def test_words_are_interned_by_first_appearance(make: Callable[[], Interner], blocks: list[str]) -> None:
    """Starting with a table of two entries, the compiled loops must enlarge it again and again."""
    interner = make()
    ids = [index for part in interner.intern_all(filter(None, blocks)) for index in part.tolist()]
    expected = [word for block in blocks for word in reference.words(block.replace("\n", " "))]
    assert interner.tokens() == list(dict.fromkeys(expected))
    assert [interner.tokens()[index] for index in ids] == expected


def test_many_words_are_told_apart() -> None:
    """Thirty thousand words of 1 to 40 letters, each twice; the table starts with room for five hundred."""
    rng = random.Random(0)
    words = list({"".join(rng.choices("abé", k=rng.randint(1, 40))) for _ in range(30_000)})
    interner = HashedWordInterner(1 << 10)
    twice = np.concatenate([interner.intern(" ".join(words)), interner.intern("\n".join(words))])
    assert twice.tolist() == 2 * list(range(len(words)))
    assert interner.tokens() == words


@given(st.lists(st.text(max_size=20), max_size=5))
def test_characters_are_interned_by_first_appearance(blocks: list[str]) -> None:
    interner, whole = CharInterner(), "".join(blocks)
    ids = [index for block in blocks for index in interner.intern(block).tolist()]
    assert interner.tokens() == list(dict.fromkeys(whole))
    assert "".join(interner.tokens()[index] for index in ids) == whole


def test_provisional_ids_of_any_size_are_kept_in_small_types(tmp_path: Path) -> None:
    parts = [[0, 1, 1], [70_000], [], [2, 255, 256]]
    stream = ProvisionalIds(tmp_path / "ids", (np.array(part, np.uint32) for part in parts))
    assert [part.tolist() for part in stream.parts()] == parts
    assert stream.num_tokens == 7
    assert {index: int(stream.occurrences[index]) for index in np.flatnonzero(stream.occurrences)} == {
        0: 1, 1: 2, 2: 1, 255: 1, 256: 1, 70_000: 1,
    }  # fmt: skip
    assert (tmp_path / "ids").stat().st_size == 3 * 1 + 1 * 4 + 3 * 4
    for largest, size in ((255, 1), (256, 2)):
        small = ProvisionalIds(tmp_path / "ids", [np.array([largest], np.uint32)])
        assert [part.tolist() for part in small.parts()] == [[largest]]
        assert (tmp_path / "ids").stat().st_size == size


def test_changed_files_of_unknown_tokens_are_refused(tmp_path: Path) -> None:
    def build(*texts: str) -> None:
        build_corpus(write_splits(tmp_path, *texts), tmp_path, "word", "", 0, [])

    build("a b\n", "a c\n", "d c\n")
    # c and d are unknown: c in val, then d and c in test.
    corpus = load_corpus(tmp_path)
    assert corpus.unknown_tokens == ["c", "d"]
    assert corpus.splits["test"].unknown.tolist() == [1, 0]
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    build("a b\n")
    for name, content, complaint in (
        ("unknown.json", whole["unknown.json"].replace(b'"d"', b'"e"'), "unknown.json: .* does not match its SHA-256"),
        ("unknown_test.npy", whole["unknown_val.npy"], "unknown_test.npy: .* match the SHA-256 in unknown.json"),
        ("vocab.json", (tmp_path / "vocab.json").read_bytes(), "unknown.json belongs to another vocab.json"),
    ):
        for stored, before in whole.items():
            (tmp_path / stored).write_bytes(before)
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=complaint):
            load_corpus(tmp_path)
