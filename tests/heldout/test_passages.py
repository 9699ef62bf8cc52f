"""Passages of long splits: the same text for every kind of token, without cut words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.core.text import words
from seqlm.heldout.selection import find_passages

lines = st.lists(st.text(alphabet="ab é漢😀\u3000", max_size=15), min_size=1, max_size=30)


@given(lines, st.sampled_from(["", " ", "\n"]), st.integers(1, 200), st.integers(1, 7), st.sampled_from([1, 3, 999]))
def test_passages_count_their_characters_and_words(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], separator: str, limit: int, number: int, block: int
) -> None:
    path = tmp_path_factory.mktemp("text") / "test.txt"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")
    characters, all_words = separator.join(lines), words(" ".join(lines))
    passages = find_passages(path, len(characters), limit, num_passages=number, block_bytes=block)
    last_char = last_word = 0
    for passage in passages:
        text = passage.read()
        first_char, end_char = (position.num_chars(separator) for position in (passage.begin, passage.end))
        first_word, end_word = (position.words for position in (passage.begin, passage.end))
        assert characters[first_char:end_char] == text.replace("\n", separator)
        assert all_words[first_word:end_word] == words(text.replace("\n", " "))
        assert passage.num_chars(separator) == end_char - first_char
        assert last_char <= first_char
        assert last_word <= first_word
        last_char, last_word = end_char, end_word
    if len(characters) <= limit:
        assert (len(passages), last_char, last_word) == (1, len(characters), len(all_words))


def test_passages_are_evenly_spaced_and_together_as_long_as_allowed(tmp_path: Path) -> None:
    # 500 lines of 20 characters: fifty passages of 2,000 / 50 = 40 characters, two lines in every ten.
    path = tmp_path / "test.txt"
    path.write_text("four and four letter\n" * 500)
    passages = find_passages(path, 10_000, 2_000)
    assert [passage.begin.byte for passage in passages] == list(range(0, 10_500, 210))
    assert {passage.read() for passage in passages} == {"four and four letter\nfour and four letter\n"}
    assert sum(passage.num_chars("") for passage in passages) == 2_000


def test_a_text_without_a_blank_is_one_passage(tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("x" * 10_000 + "\n")
    (passage,) = find_passages(path, 10_000, 1_000)
    assert passage.read() == "x" * 10_000


def test_a_missing_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test\.txt: no such file: run the stage that writes it"):
        find_passages(tmp_path / "test.txt", 10, 10)
