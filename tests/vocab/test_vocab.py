"""Vocabularies and encoded corpora."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.preprocess.cleaning import clean_line
from seqlm.vocab.corpus_building import SPLITS, build_corpus, load_split, token_blocks
from seqlm.vocab.vocabulary import Vocab, choose_tokens


def write_splits(folder: Path, **contents: str) -> dict[str, Path]:
    for split in SPLITS:
        (folder / f"{split}.txt").write_text(contents.get(split, "a\n"))
    return {split: folder / f"{split}.txt" for split in SPLITS}


def build(folder: Path, kind: str = "char", separator: str = "", **contents: str) -> Vocab:
    return build_corpus(write_splits(folder, **contents), folder, kind, separator, 0, [])


def chosen(tokens: Sequence[str], min_freq: int, reserved: list[str]) -> tuple[list[str], list[int]]:
    met = list(dict.fromkeys(tokens))
    occurrences = np.array([tokens.count(token) for token in met])
    found = choose_tokens(met, occurrences, min_freq, reserved)
    return found.tokens, found.counts


def test_tokens_come_by_frequency_then_by_first_appearance() -> None:
    # b 3 times; c and a twice each, c seen first; d once.
    tokens, counts = chosen("cabbcabd", min_freq=0, reserved=[])
    assert tokens == ["<unk>", "b", "c", "a", "d"]
    assert counts == [0, 3, 2, 2, 1]


def test_rare_tokens_count_as_unknown_and_reserved_ones_stay() -> None:
    tokens, counts = chosen(["x", "y", "x", "z"], min_freq=2, reserved=["<pad>", "y"])
    # y is reserved, so it stays with its one occurrence; z is dropped.
    assert tokens == ["<unk>", "<pad>", "y", "x"]
    assert counts == [1, 0, 1, 2]


def test_the_vocabulary_is_built_on_train_alone(tmp_path: Path) -> None:
    vocab = build(tmp_path, train="ab\nab\n", val="abz\n", test="b\n")
    assert vocab.tokens == ["<unk>", "a", "b"]
    assert load_split(tmp_path, "val").tolist() == [1, 2, 0]
    assert vocab.splits["val"].unknown_share == pytest.approx(1 / 3)


@pytest.mark.parametrize(("separator", "joined"), [("", "abc"), (" ", "ab c"), ("\n", "ab\nc")])
def test_lines_are_joined_by_the_separator(separator: str, joined: str, tmp_path: Path) -> None:
    vocab = build(tmp_path, separator=separator, train="ab\nc\n")
    assert vocab.join(vocab.decode(load_split(tmp_path, "train"))) == joined
    assert vocab.num_chars["train"] == len(joined)


def test_words_count_the_same_characters_as_characters_do(tmp_path: Path) -> None:
    vocab = build(tmp_path, kind="word", separator="\n", train="to be\n\nor not\n")
    assert vocab.tokens == ["<unk>", "to", "be", "or", "not"]
    assert vocab.num_chars["train"] == len("to be\n\nor not")


def test_a_saved_vocabulary_needs_no_corpus(tmp_path: Path) -> None:
    saved = build(tmp_path, train="abc\n")
    loaded = Vocab.load(tmp_path / "vocab.json")
    assert loaded == saved
    assert loaded.encode(["c", "?"]).tolist() == [saved.tokens.index("c"), 0]


def test_the_smallest_integer_type_is_stored(tmp_path: Path) -> None:
    assert build(tmp_path, train="abc\n").dtype == np.uint8
    many = " ".join(f"w{number}" for number in range(300))
    build(tmp_path, kind="word", train=many + "\n")
    assert load_split(tmp_path, "train").dtype == np.uint16


def test_an_index_outside_the_vocabulary_is_an_error(tmp_path: Path) -> None:
    vocab = build(tmp_path, train="ab\n")
    with pytest.raises(IndexError, match="index 3 is outside a vocabulary of 3"):
        vocab.decode([3])
    with pytest.raises(IndexError):
        vocab.decode([-1])


def test_changed_files_are_refused(tmp_path: Path) -> None:
    build(tmp_path, train="abab\n")
    array = tmp_path / "train.npy"
    array.write_bytes(array.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DataError, match=r"train\.npy: its content does not match"):
        load_split(tmp_path, "train")
    path = tmp_path / "vocab.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"format": 99}))
    with pytest.raises(DataError, match="not of format 2"):
        Vocab.load(path)
    path.write_text(json.dumps(value | {"tokens": ["<unk>", "b", "a"]}))
    with pytest.raises(DataError, match="does not match its SHA-256"):
        Vocab.load(path)


@given(
    lines=st.lists(st.text(alphabet="ab c", max_size=8), min_size=1, max_size=6),
    separator=st.sampled_from(["", " ", "\n"]),
)
@pytest.mark.parametrize("block_size", [1, 2, 1 << 20])
def test_blocks_do_not_change_the_tokens(
    block_size: int, lines: list[str], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "split.txt"
    path.write_text("".join(line + "\n" for line in lines))
    blocks = token_blocks(path, "char", separator, block_size)
    characters = "".join(block for block in blocks if isinstance(block, str))
    found_words = [word for block in token_blocks(path, "word", separator, block_size) for word in block]
    assert characters == separator.join(lines)
    assert found_words == " ".join(lines).split()


@given(st.lists(st.sampled_from(["the", "time", "machine", "<unk>"]), min_size=1))
def test_encoding_and_decoding_come_round(tokens: list[str]) -> None:
    vocab = Vocab("word", ["<unk>", "the", "time", "machine"], [0, 1, 1, 1], "", {})
    assert vocab.decode(vocab.encode(tokens)) == tokens


def test_the_book_has_the_vocabularies_of_the_book(book: Path, tmp_path: Path) -> None:
    whole = "".join(clean_line(line) + "\n" for line in book.read_text(encoding="utf-8").splitlines())
    chars = build(tmp_path, train=whole)
    assert (len(chars), chars.splits["train"].num_tokens) == (28, 170_580)
    by_word = build(tmp_path, kind="word", train=whole)
    assert by_word.tokens[:10] == ["<unk>", "the", "i", "and", "of", "a", "to", "was", "in", "that"]
    line_0 = by_word.tokenize("the time machine by h g wells")
    assert by_word.encode(line_0).tolist() == [1, 19, 50, 40, 2183, 2184, 400]
