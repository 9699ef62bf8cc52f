"""Scored texts: what surprisals are summed over."""

import numpy as np
import pytest

from made_scores import scored_text, stream
from seqlm.core.errors import DataError
from seqlm.heldout.scored_text import Stream, stream_of


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


def test_surprisals_of_another_text_are_refused() -> None:
    with pytest.raises(DataError, match="9 surprisals for a text of 10 scored tokens: score again"):
        scored_text(10).with_unknown_cost(np.ones(9))
