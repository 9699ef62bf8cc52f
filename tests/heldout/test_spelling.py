"""What unknown words cost."""

from seqlm.score.heldout.spelling import NATS_OF_ANY_CHARACTER, SpellingModel


def test_unknown_words_pay_for_their_spelling() -> None:
    spelling = SpellingModel(["sea", "seas", "tea", "teas", "eat", "seat"])
    likely, unlikely, foreign = spelling.nats(["seats", "ttsse", "sée"])
    assert likely < unlikely
    assert foreign > NATS_OF_ANY_CHARACTER
    assert spelling.nats([]).shape == (0,)
