"""Prompts that are cut from the text itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.vocab.corpus import prompts
from seqlm.vocab.vocabulary import Vocab


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


def test_a_text_without_spaces_is_cut_anywhere() -> None:
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏"
    assert cut(text, 2) == [text[:20], text[20:]]


def test_a_short_text_gives_fewer_prompts_and_an_empty_one_is_refused() -> None:
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
