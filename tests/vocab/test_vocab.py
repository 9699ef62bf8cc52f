"""Vocabularies and encoded corpora."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reference import clean_line
from seqlm.core.errors import DataError
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.vocabulary import Vocab, choose_tokens


def build(folder: Path, kind: str = "char", separator: str = "", **contents: str) -> Vocab:
    for split in SPLITS:
        (folder / f"{split}.txt").write_text(contents.get(split, "a\n"))
    texts = {split: folder / f"{split}.txt" for split in SPLITS}
    return build_corpus(texts, folder, kind, separator, 0, [])


def chosen(tokens: Sequence[str], min_freq: int, reserved: list[str]) -> tuple[list[str], list[int]]:
    seen = list(dict.fromkeys(tokens))
    occurrences = np.array([tokens.count(token) for token in seen])
    found = choose_tokens(seen, occurrences, min_freq, reserved)
    return found.tokens, found.counts


def test_tokens_are_sorted_by_frequency_then_by_first_appearance() -> None:
    # b 3 times; c and a twice each, c first; d once.
    assert chosen("cabbcabd", 0, []) == (["<unk>", "b", "c", "a", "d"], [0, 3, 2, 2, 1])


def test_rare_tokens_count_as_unknown_and_reserved_ones_stay() -> None:
    # y is reserved, so it stays with its one occurrence; z is dropped.
    assert chosen(["x", "y", "x", "z"], 2, ["<pad>", "y"]) == (["<unk>", "<pad>", "y", "x"], [1, 0, 1, 2])


def test_the_vocabulary_is_built_from_train_only_and_saved_whole(tmp_path: Path) -> None:
    vocab = build(tmp_path, train="ab\nab\n", val="abz\n", test="b\n")
    assert vocab.tokens == ["<unk>", "a", "b"]
    assert load_split(tmp_path, "val").tolist() == [1, 2, 0]
    assert vocab.splits["val"].unknown_share == pytest.approx(1 / 3)
    loaded = Vocab.load(tmp_path / "vocab.json")
    assert loaded == vocab
    assert loaded.encode(["b", "?"]).tolist() == [2, 0]


@pytest.mark.parametrize(("separator", "joined"), [("", "abc"), (" ", "ab c"), ("\n", "ab\nc")])
def test_lines_are_joined_by_the_separator(separator: str, joined: str, tmp_path: Path) -> None:
    vocab = build(tmp_path, separator=separator, train="ab\nc\n")
    assert vocab.join(vocab.decode(load_split(tmp_path, "train"))) == joined
    assert vocab.num_chars["train"] == len(joined)


def test_all_kinds_of_tokens_have_the_same_number_of_characters(tmp_path: Path) -> None:
    vocab = build(tmp_path, kind="word", separator="\n", train="to be\n\nor not\n")
    assert vocab.tokens == ["<unk>", "to", "be", "or", "not"]
    assert vocab.num_chars["train"] == len("to be\n\nor not")


def test_an_index_outside_the_vocabulary_is_an_error(tmp_path: Path) -> None:
    vocab = build(tmp_path, train="ab\n")
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"index {index} is outside a vocabulary of 3"):
            vocab.decode([index])


def test_changed_files_are_refused(tmp_path: Path) -> None:
    build(tmp_path, train="abab\n")
    array = tmp_path / "train.npy"
    array.write_bytes(array.read_bytes()[:-1] + b"\x01")
    with pytest.raises(
        DataError,
        match=r"train\.npy: its .* the SHA-256 in vocab\.json: run the vocab stage again$",
    ):
        load_split(tmp_path, "train")
    path = tmp_path / "vocab.json"
    with pytest.raises(DataError, match=r"holds tokens of kind char, not word: run the vocab stage again$"):
        Vocab.load(path, "word")
    value = json.loads(path.read_text())
    for change, complaint in (
        ({"format": 99}, "not in format 3, .*: run the vocab stage again$"),
        ({"tokens": ["<unk>", "b", "a"]}, "does not match its SHA-256"),
    ):
        path.write_text(json.dumps(value | change))
        with pytest.raises(DataError, match=complaint):
            Vocab.load(path)


def test_a_word_longer_than_all_blocks_is_one_word(tmp_path: Path) -> None:
    (tmp_path / "split.txt").write_text("a " + "b" * 1000 + " c\n")
    blocks = token_kind("word").blocks(tmp_path / "split.txt", "", 10)
    assert [word for block in blocks for word in block.split()] == ["a", "b" * 1000, "c"]


def test_the_book_has_the_vocabularies_of_the_book(book: Path, tmp_path: Path) -> None:
    whole = "".join(clean_line(line) + "\n" for line in book.read_text(encoding="utf-8").splitlines())
    chars = build(tmp_path, train=whole)
    assert (len(chars), chars.splits["train"].num_tokens) == (28, 170_580)
    by_word = build(tmp_path, kind="word", train=whole)
    assert by_word.tokens[:10] == ["<unk>", "the", "i", "and", "of", "a", "to", "was", "in", "that"]
    line_0 = by_word.tokenize("the time machine by h g wells")
    assert by_word.encode(line_0).tolist() == [1, 19, 50, 40, 2183, 2184, 400]
