"""The surprisal of subwords, shown for their characters."""

import math

import numpy as np

from seqlm.pipeline.score.excerpts import passage, per_character
from seqlm.vocab.kinds import BYTE_TOKENS, token_kind

SUBWORD = token_kind("subword")
BIT = math.log(2)
# é is C3 A9 in UTF-8.
FIRST, SECOND = BYTE_TOKENS[0xC3], BYTE_TOKENS[0xA9]


def test_the_bits_of_a_subword_are_shared_evenly_by_its_characters() -> None:
    # The first subword has no surprisal; " sea" has 4 characters and 6 bits, é costs 5 + 2 bits in its two bytes.
    found = passage(SUBWORD, ["the", " sea", FIRST, SECOND], np.array([6, 5, 2]) * BIT, 100)
    assert found["tokens"] == ["t", "h", "e", " ", "s", "e", "a", "é"]
    assert found["bits"] == [None, None, None, 1.5, 1.5, 1.5, 1.5, 7.0]
    assert found["separator"] == ""
    # The first token may be a byte of a character.
    assert passage(SUBWORD, [FIRST, SECOND, "a"], np.array([5, 1]) * BIT, 9)["bits"] == [5.0, 1.0]


def test_bytes_that_are_no_character_are_shown_as_a_replacement_character() -> None:
    # A text may end in the middle of a character.
    found = passage(SUBWORD, ["a", FIRST], np.array([3.0]) * BIT, 100)
    assert (found["tokens"], found["bits"]) == (["a", "\ufffd"], [None, 3.0])
    assert len(per_character(SUBWORD, [SECOND, SECOND, "a"], [1.0, 1.0, 1.0])[1]) == len("\ufffd\ufffda")


def test_only_the_first_token_is_not_scored() -> None:
    word = token_kind("word")
    shown = passage(word, ["the", "sea", "is", "there"], np.array([np.nan, np.inf, 2 * BIT]), 100)
    assert shown["bits"] == [None, "infinite", "infinite", 2.0]
    assert passage(word, [], np.empty(0), 100)["bits"] == []
