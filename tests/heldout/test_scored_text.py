"""Scored texts: passages of long splits, the cost of unknown words, and the folds that calibrate intervals."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_scores import scored_text, stream
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.text import words
from seqlm.heldout.scored_text import Folds, Stream, stream_of
from seqlm.heldout.selection import cross_validate, find_passages, fold_bits, select_heldout
from seqlm.heldout.spelling import NATS_OF_ANY_CHARACTER, SpellingModel
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from subwords import encode


def test_a_warm_up_is_read_and_not_scored() -> None:
    # Tokens 10 and 11 are scored, 12 is a warm-up, 13 and 14 are scored again.
    read, is_scored = np.arange(10, 15), np.array([True, True, False, True, True])
    text = stream([10, 11, 13, 14])
    passages = Stream(**vars(text) | {"read": read, "is_scored": is_scored})
    assert passages.nats(lambda ids: ids[1:] / 10).tolist() == [1.1, 1.3, 1.4]
    assert text.nats(lambda ids: ids[1:] / 10).tolist() == [1.1, 1.3, 1.4]


def test_the_beginning_of_a_stream() -> None:
    text = stream(range(4), scored_chars=9)
    assert text.beginning(4) is text
    # One of three scored tokens has a third of the nine characters.
    assert (text.beginning(2).ids.tolist(), text.beginning(2).scored_chars) == ([0, 1], 3)


def test_unknown_tokens_cost_their_spelling() -> None:
    text = stream_of(np.array([0, 1, 0]), np.array([5.0, 0.0, 7.0]), np.array([1, 2, 3]), 2)
    # The first token is not scored.
    assert text.with_unknown_cost(np.array([1.0, 2.0])).tolist() == [1, 9]
    assert text.unknown_share == 1 / 2
    # Surprisals of another text are refused.
    with pytest.raises(DataError, match="9 surprisals for a text of 10 scored tokens: score again"):
        scored_text(10).with_unknown_cost(np.ones(9))


def test_unknown_words_cost_their_spelling() -> None:
    spelling = SpellingModel(["sea", "seas", "tea", "teas", "eat", "seat"])
    likely, unlikely, foreign = spelling.nats(["seats", "ttsse", "sée"])
    assert likely < unlikely
    assert foreign > NATS_OF_ANY_CHARACTER
    assert spelling.nats([]).shape == (0,)


def test_the_next_characters_of_a_word_and_its_end_are_a_distribution() -> None:
    spelling = SpellingModel(["sea", "seas", "tea"])
    for prefix in ("", "s", "sea", "xx"):
        # An unknown character is one of all characters that the words lack.
        assert sum(spelling.prob(prefix, character) for character in ["", *"seat", "x"]) == pytest.approx(1)
    assert spelling.prob("", "") == 0


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
    # A text without a blank is one passage.
    path.write_text("x" * 10_000 + "\n")
    (passage,) = find_passages(path, 10_000, 1_000)
    assert passage.read() == "x" * 10_000
    path.unlink()
    with pytest.raises(DataError, match=r"test\.txt: no such file: run the stage that writes it"):
        find_passages(path, 10, 10)


# One sentence again and again, except for a part without any order.
REPEATED = np.resize([1, 2, 3, 4, 2, 5], 1200)
IDS = np.concatenate([REPEATED, np.random.default_rng(0).integers(1, 6, 300), REPEATED[:300]])


def test_each_part_is_scored_by_models_of_the_rest() -> None:
    bits = list(fold_bits(IDS, 6, 300))
    assert len(bits) == 6
    model = KneserNey(count_ngrams(np.concatenate([IDS[:1200], IDS[1500:]]), 6, 5), 3)
    assert bits[4][1] == pytest.approx(token_nll(model, IDS[1200:1500]).mean() / np.log(2))
    assert min(bits[4]) > 2 > 0.5 > max(value for index in (0, 1, 2, 3, 5) for value in bits[index])


# A short text and one that is scored in passages have no folds.
@pytest.mark.parametrize(
    ("num_test_lines", "max_chars", "num_folds"),
    [(10, 10_000, 10), (40, 10_000, 5), (1, 10_000, None), (40, 1_000, None)],
)
def test_folds_are_as_long_as_test(num_test_lines: int, max_chars: int, num_folds: int | None, tmp_path: Path) -> None:
    texts = ["the sea came in\nand went out again\n" * size for size in (100, 10, num_test_lines)]
    layout = encode(Layout(tmp_path), ["char"], " ", *texts)
    select_heldout(layout, "char", max_chars)
    folds, path = cross_validate(layout), layout.heldout("char") / "folds.json"
    if num_folds is None:
        assert folds == Folds([], [])
        assert Folds.load(path.parent) is None
        return
    assert [len(bits) for bits in folds.bits] == [num_folds, num_folds]
    # About 35 characters a pair of lines, and at least 20 a block.
    assert [len(blocks) for blocks in folds.test_blocks] == [min(num_test_lines * 35 // 20, 50)] * 2
    assert Folds.load(path.parent) == folds
    path.write_text(path.read_text().replace(".", ".1", 1))
    with pytest.raises(DataError, match="does not match"):
        Folds.load(path.parent)
