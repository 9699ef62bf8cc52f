"""A passage under models with different tokens."""

import math

import numpy as np

from seqlm.pipeline.report.passages import align, bits_by_character, shaded_line
from seqlm.pipeline.score.excerpts import passage
from seqlm.vocab.kinds import token_kind

BIT = math.log(2)


def test_the_tokens_of_all_models_are_parts_of_one_text() -> None:
    characters = passage(token_kind("char"), list("cat sat"), np.arange(1, 7) * BIT, 100)
    words = passage(token_kind("word"), ["cat", "sat"], np.array([7.5]) * BIT, 100)
    found = align({"words": words, "lstm": characters})
    assert found["text"] == "cat sat"
    # The first token of each is not scored, and models over words have no cost for the space.
    assert found["models"] == {"words": [[3, None], None, [3, 7.5]], "lstm": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def test_passages_may_have_different_lengths() -> None:
    # A passage of words ends with a whole word, and a text may have words only.
    words = passage(token_kind("word"), ["cat", "sat"], np.array([np.inf]), 5)
    assert align({"words": words}) == {
        "text": "cat sat", "models": {"words": [[3, None], None, [3, "infinite"]]}
    }  # fmt: skip
    characters = passage(token_kind("char"), list("cat sa"), np.ones(5) * BIT, 6)
    shorter = align({"lstm": characters, "words": words})
    assert shorter["models"]["words"] == [[3, None], None, [2, "infinite"]]
    longer = passage(token_kind("char"), list("cat sat on"), np.ones(9) * BIT, 10)
    assert align({"lstm": longer, "words": words})["models"]["words"][3:] == [None, None, None]
    assert align({}) == {"text": "", "models": {}}


def test_the_bits_of_a_token_are_divided_among_its_characters() -> None:
    bits = bits_by_character([[1, None], [2, 3.0], 0.5, "infinite"])
    assert bits == [None, 1.5, 1.5, 0.5, math.inf]
    assert shaded_line("a", [None], 5) == ([("a", "")], 0)


def test_a_line_ends_with_a_whole_word_and_has_the_shades_of_its_bits() -> None:
    # A shade is 1.2 bits wide, and the last one has no end.
    line, mean = shaded_line("a cat sat", [None, 1.1, 1.2, 30.0, 0.0, "infinite", 1.0, 1.0, 1.0], 5)
    assert line == [("a", ""), (" ", "s0")]
    assert mean == 1.1
    line, _ = shaded_line("a cat sat", [None, 1.1, 1.2, 30.0, 0.0, "infinite", 1.0, 1.0, 1.0], 9)
    assert [shade for _, shade in line] == ["", "s0", "s1", "s9", "s0", "s9", "s0", "s0", "s0"]
    assert shaded_line("catsat", [1.0] * 6, 4)[0] == [(character, "s0") for character in "cats"]
