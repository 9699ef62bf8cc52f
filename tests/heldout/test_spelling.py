"""The cost of unknown words."""

import pytest

from seqlm.heldout.spelling import NATS_OF_ANY_CHARACTER, SpellingModel


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
