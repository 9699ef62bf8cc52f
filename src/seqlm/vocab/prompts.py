"""The first words of a split: prompts for models if the text's own words are asked for."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.vocab.vocabulary import Vocab

AUTO = "auto"
"""In a setting: the beginning of val instead of given words."""

_MAX_LENGTH = 20
"""Characters of a prompt."""
_READ_TOKENS = 1000


def prompts(vocab: Vocab, ids: NDArray[np.integer], count: int) -> list[str]:
    """Return up to ``count`` pieces of text from the beginning of a split, one after another.

    ``ids`` are tokens of ``vocab``, of any kind. A piece has at most 20 characters and ends
    before a space if possible; tokens that the vocabulary lacks are left out. Raises DataError
    if the split begins with nothing but spaces.
    """
    rest = vocab.join(vocab.decode(index for index in ids[:_READ_TOKENS].tolist() if index)).strip()
    found: list[str] = []
    while rest and len(found) < count:
        end = _end_of_prompt(rest)
        found.append(rest[:end])
        rest = rest[end:].strip()
    if not found:
        raise DataError("val begins with nothing to continue: set the prefixes")
    return found


def _end_of_prompt(text: str) -> int:
    """Return the last position within the limit that a space follows, or the limit if there is none."""
    if len(text) <= _MAX_LENGTH:
        return len(text)
    pairs = enumerate(pairwise(text[: _MAX_LENGTH + 1]), 1)
    ends = (end for end, (before, after) in pairs if after.isspace() and not before.isspace())
    return max(ends, default=_MAX_LENGTH)
