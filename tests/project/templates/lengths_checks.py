"""A template for the tests of a new stage, ``lengths``."""

from seqlm.lengths.counting import count_lengths


def test_longer_lines_count_as_the_longest() -> None:
    # Two lines have 3 characters, and one of 5 counts as 4.
    assert count_lengths(["sea", "the", "waves"], 4) == {"3": 2, "4": 1}
