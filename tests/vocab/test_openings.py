"""The text's own first words, in place of the book's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.vocab.prompts import prompts
from seqlm.vocab.vocabulary import Vocab


def cut(text: str, count: int, *, unknown: str = "") -> list[str]:
    tokens = ["<unk>", *sorted(set(text) - set(unknown))]
    vocab = Vocab("char", tokens, [1] * len(tokens), "\n", {})
    return prompts(vocab, np.asarray(vocab.encode(list(text)), np.uint8), count)


def test_pieces_end_before_spaces_and_follow_each_other() -> None:
    # "of a passive, passiv" are twenty characters, in the midst of a word: the last space ends the piece.
    text = "  of a passive, passive kind. \nThe other went on"
    assert cut(text, 2) == ["of a passive,", "passive kind. \nThe"]
    assert cut(text, 1) == ["of a passive,"]
    assert cut("exactly twenty chars and more", 1) == ["exactly twenty chars"]


def test_a_text_without_spaces_is_cut_anywhere() -> None:
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏"
    assert cut(text, 2) == [text[:20], text[20:]]


def test_a_short_text_gives_what_it_has() -> None:
    assert cut("ab", 2) == ["ab"]
    with pytest.raises(DataError, match="nothing to continue"):
        cut(" \n ", 1)


def test_characters_that_the_vocabulary_lacks_are_left_out() -> None:
    assert cut("naïve men", 1, unknown="ï") == ["nave men"]


@given(st.text(st.sampled_from("ab \n漢"), max_size=80), st.integers(1, 4))
def test_every_piece_is_a_piece_of_the_text(text: str, count: int) -> None:
    if not text.strip():
        return
    place = 0
    for piece in cut(text, count):
        assert 0 < len(piece) <= 20
        assert piece == piece.strip()
        place = text.index(piece, place) + len(piece)


def test_words_are_an_opening_too() -> None:
    words = ["the", "sea", "came", "in", "and", "the", "sea", "went", "out"]
    vocab = Vocab("word", ["<unk>", *sorted(set(words) - {"came"})], [1] * 7, " ", {})
    # "the sea in and the s" are twenty characters, and a word is unknown.
    assert prompts(vocab, np.asarray(vocab.encode(words), np.uint8), 1) == ["the sea in and the"]
