"""Vocabularies and encoded corpora, and prompts that are cut from the text itself."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import clean_line
from seqlm.core.errors import DataError
from seqlm.vocab.corpus import build_corpus, load_split, prompts
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.vocabulary import Vocab, choose_tokens
from subwords import write_splits


def build(folder: Path, *texts: str, kind: str = "char", separator: str = "") -> Vocab:
    return build_corpus(write_splits(folder, *texts), folder, kind, separator, 0, [])


def chosen(tokens: Sequence[str], min_freq: int, reserved: list[str]) -> tuple[list[str], list[int]]:
    seen = list(dict.fromkeys(tokens))
    occurrences = np.array([tokens.count(token) for token in seen])
    found = choose_tokens(seen, occurrences, min_freq, reserved)
    return found.tokens, found.counts


def test_tokens_are_sorted_by_frequency_then_by_first_appearance() -> None:
    # b 3 times; c and a twice each, c first; d once.
    assert chosen("cabbcabd", 0, []) == (["<unk>", "b", "c", "a", "d"], [0, 3, 2, 2, 1])
    # Rare tokens count as unknown. y is reserved, so it stays with its one occurrence; z is dropped.
    assert chosen(["x", "y", "x", "z"], 2, ["<pad>", "y"]) == (["<unk>", "<pad>", "y", "x"], [1, 0, 1, 2])


def test_the_vocabulary_is_built_from_train_only_and_saved_whole(tmp_path: Path) -> None:
    vocab = build(tmp_path, "ab\nab\n", "abz\n", "b\n")
    assert vocab.tokens == ["<unk>", "a", "b"]
    assert load_split(tmp_path, "val").tolist() == [1, 2, 0]
    assert vocab.splits["val"].unknown_share == pytest.approx(1 / 3)
    loaded = Vocab.load(tmp_path / "vocab.json")
    assert loaded == vocab
    assert loaded.encode(["b", "?"]).tolist() == [2, 0]
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"index {index} is outside a vocabulary of 3"):
            loaded.decode([index])


@pytest.mark.parametrize(("separator", "joined"), [("", "abc"), (" ", "ab c"), ("\n", "ab\nc")])
def test_lines_are_joined_by_the_separator(separator: str, joined: str, tmp_path: Path) -> None:
    vocab = build(tmp_path, "ab\nc\n", separator=separator)
    assert vocab.join(vocab.decode(load_split(tmp_path, "train"))) == joined
    assert vocab.num_chars["train"] == len(joined)
    assert build(tmp_path, "ab\nc\n", kind="word", separator=separator).num_chars["train"] == len(joined)


def test_changed_files_are_refused(tmp_path: Path) -> None:
    build(tmp_path, "abab\n")
    array = tmp_path / "train.npy"
    array.write_bytes(array.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DataError, match=r"train\.npy: its .* the SHA-256 in vocab\.json: run the vocab stage again$"):
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
    chars = build(tmp_path, whole)
    assert (len(chars), chars.splits["train"].num_tokens) == (28, 170_580)
    by_word = build(tmp_path, whole, kind="word")
    assert by_word.tokens[:10] == ["<unk>", "the", "i", "and", "of", "a", "to", "was", "in", "that"]
    line_0 = by_word.tokenize("the time machine by h g wells")
    assert by_word.encode(line_0).tolist() == [1, 19, 50, 40, 2183, 2184, 400]


def cut(text: str, count: int, *, unknown: str = "") -> list[str]:
    tokens = ["<unk>", *sorted(set(text) - set(unknown))]
    vocab = Vocab("char", tokens, [1] * len(tokens), "\n", {})
    return prompts(vocab, np.asarray(vocab.encode(list(text)), np.uint8), count)


def test_prompts_end_before_spaces_and_follow_each_other() -> None:
    # "of a passive, passiv" has twenty characters and ends inside a word, so the last space ends the prompt.
    text = "  of a passive, passive kind. \nThe other went on"
    assert cut(text, 2) == ["of a passive,", "passive kind. \nThe"]
    assert cut(text, 1) == ["of a passive,"]
    assert cut("exactly twenty chars and more", 1) == ["exactly twenty chars"]
    # A text without spaces is cut anywhere.
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏"
    assert cut(text, 2) == [text[:20], text[20:]]
    # A short text gives fewer prompts.
    assert cut("ab", 2) == ["ab"]
    with pytest.raises(DataError, match="nothing to continue"):
        cut(" \n ", 1)


def test_unknown_tokens_are_left_out() -> None:
    assert cut("naïve men", 1, unknown="ï") == ["nave men"]
    words = ["the", "sea", "came", "in", "and", "the", "sea", "went", "out"]
    vocab = Vocab("word", ["<unk>", *sorted(set(words) - {"came"})], [1] * 7, " ", {})
    # "the sea in and the s" has twenty characters.
    assert prompts(vocab, np.asarray(vocab.encode(words), np.uint8), 1) == ["the sea in and the"]


@given(st.text(st.sampled_from("ab \n漢"), max_size=80), st.integers(1, 4))
def test_every_prompt_is_part_of_the_text(text: str, count: int) -> None:
    if not text.strip():
        return
    end = 0
    for prompt in cut(text, count):
        assert 0 < len(prompt) <= 20
        assert prompt == prompt.strip()
        end = text.index(prompt, end) + len(prompt)
