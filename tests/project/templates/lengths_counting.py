"""A template for the library of a new stage, ``lengths``: counts of lines by their length."""

from collections import Counter
from collections.abc import Iterable


def count_lengths(lines: Iterable[str], longest: int) -> dict[str, int]:
    """Return the number of lines of each length in characters."""
    return Counter(str(min(len(line), longest)) for line in lines)
