"""The first words of a split: what models continue where the text's own words are asked for."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.vocab.vocabulary import Vocab

AUTO = "auto"
"""In a setting: the beginning of val in place of words that stand there."""

_LENGTH = 20
"""Most characters of an opening."""
_READ = 1000


def prompts(vocab: Vocab, ids: NDArray[np.integer], count: int) -> list[str]:
    """Return up to ``count`` pieces of text from the beginning of a split, one after the other.

    ``ids`` are tokens of ``vocab``, of any kind. A piece has at most 20 characters and ends
    before a space where it has one; what the vocabulary lacks is left out.
    Raises DataError where the split begins with nothing but spaces.
    """
    rest = vocab.join(vocab.decode(index for index in ids[:_READ].tolist() if index)).strip()
    found: list[str] = []
    while rest and len(found) < count:
        end = _end_of_piece(rest)
        found.append(rest[:end])
        rest = rest[end:].strip()
    if not found:
        raise DataError("val begins with nothing to continue: set the prefixes")
    return found


def _end_of_piece(text: str) -> int:
    if len(text) <= _LENGTH:
        return len(text)
    # Where a space follows: the last such place, if there is one.
    ends = [place for place, (before, after) in enumerate(pairwise(text[: _LENGTH + 1]), 1) if _ends(before, after)]
    return ends[-1] if ends else _LENGTH


def _ends(before: str, after: str) -> bool:
    return after.isspace() and not before.isspace()
