"""A passage under models with different tokens."""

import math

import numpy as np

from seqlm.report.passages import align, by_mean_bits
from seqlm.score.passage import passage
from seqlm.vocab.kinds import token_kind

BIT = math.log(2)


def test_the_tokens_of_all_models_are_parts_of_one_text() -> None:
    characters = passage(token_kind("char"), list("cat sat"), np.arange(1, 7) * BIT, 100)
    words = passage(token_kind("word"), ["cat", "sat"], np.array([7.5]) * BIT, 100)
    found = align({"words": words, "lstm": characters})
    assert (found["text"], found["glued"]) == ("cat sat", "")
    # The first token of each is not scored, and models over words have no cost for the space.
    assert found["models"] == {"words": [[3, None], None, [3, 7.5]], "lstm": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def test_words_that_a_line_end_joined_are_pointed_out() -> None:
    characters = passage(token_kind("char"), list("a catsat"), np.ones(7), 100)
    words = passage(token_kind("word"), ["a", "cat", "sat"], np.ones(2), 100)
    found = align({"words": words, "lstm": characters})
    assert (found["text"], found["glued"]) == ("a catsat", "catsat")
    assert [cost if cost is None or isinstance(cost, float) else cost[0] for cost in found["models"]["words"]] == [
        None, None, 3, 3,
    ]  # fmt: skip


def test_passages_may_have_different_lengths() -> None:
    # A passage of words ends with a whole word, and a text may have words only.
    words = passage(token_kind("word"), ["cat", "sat"], np.array([np.inf]), 5)
    assert align({"words": words}) == {
        "text": "cat sat", "glued": "", "models": {"words": [[3, None], None, [3, "infinite"]]}
    }  # fmt: skip
    characters = passage(token_kind("char"), list("cat sa"), np.ones(5) * BIT, 6)
    shorter = align({"lstm": characters, "words": words})
    assert shorter["models"]["words"] == [[3, None], None, [2, "infinite"]]
    longer = passage(token_kind("char"), list("cat sat on"), np.ones(9) * BIT, 10)
    assert align({"lstm": longer, "words": words})["models"]["words"][3:] == [None, None, None]
    assert align({}) == {"text": "", "glued": "", "models": {}}


def test_models_are_listed_by_their_mean_bits_and_those_of_words_only_are_left_out() -> None:
    # 3 bits for two characters, 2 bits for one, no probability, and a model that does not predict the blank.
    models = {
        "a": [None, 2.0, None],
        "b": [[1, None], [2, 3.0]],
        "c": [None, "infinite", 0.1],
        "words": [[2, 0.2], None],
    }
    assert by_mean_bits(models, {"words"}) == ["b", "a", "c"]
    assert by_mean_bits({"words": models["words"]}, {"words"}) == ["words"]
    assert by_mean_bits({"words": [None], "lstm": [None]}, set()) == ["words", "lstm"]
