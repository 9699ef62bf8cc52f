"""Where places of a text lie in the stream of its tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.score.heldout.passages import Place
from seqlm.vocab.vocabulary import Vocab

_BLOCK = 1 << 20


def token_offsets(vocab: Vocab, ids: NDArray[np.integer], places: Sequence[Place]) -> list[int]:
    """Return how many tokens of a split's ``ids`` end before each of some places, which rise.

    They follow from what was counted in the text, or from the lengths of the tokens.
    """
    kind, separator = vocab.of_kind, vocab.line_separator
    if not kind.is_lossless:
        return [place.words for place in places]
    chars = [place.num_chars(separator) for place in places]
    return chars if kind.is_character else _passed(vocab.lengths(vocab.tokens), ids, chars)


def _passed(lengths: NDArray[np.int64], ids: NDArray[np.integer], chars: Sequence[int]) -> list[int]:
    """Return how many tokens are over when so many characters have passed."""
    found: list[int] = []
    before = 0
    for start in range(0, len(ids), _BLOCK):
        ends = before + np.cumsum(lengths[np.asarray(ids[start : start + _BLOCK])])
        before = int(ends[-1])
        # Where the block ends at the place itself, bytes that end a character may follow in the next.
        while len(found) < len(chars) and chars[len(found)] < before:
            found.append(start + int(np.searchsorted(ends, chars[len(found)], side="right")))
    return found + [len(ids)] * (len(chars) - len(found))
