"""From positions in a text to positions in the stream of its tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.heldout.passages import TextPosition
from seqlm.vocab.vocabulary import Vocab

_BLOCK = 1 << 20


def token_offsets(vocab: Vocab, ids: NDArray[np.integer], positions: Sequence[TextPosition]) -> list[int]:
    """Return how many tokens of a split's ``ids`` end before each of some increasing positions."""
    kind, separator = vocab.token_kind, vocab.line_separator
    if not kind.is_lossless:
        return [position.words for position in positions]
    chars = [position.num_chars(separator) for position in positions]
    return chars if kind.is_character else _tokens_within(vocab.lengths(vocab.tokens), ids, chars)


def _tokens_within(lengths: NDArray[np.int64], ids: NDArray[np.integer], chars: Sequence[int]) -> list[int]:
    """Return how many tokens fit into each of some increasing numbers of characters."""
    found: list[int] = []
    before = 0
    for start in range(0, len(ids), _BLOCK):
        ends = before + np.cumsum(lengths[np.asarray(ids[start : start + _BLOCK])])
        before = int(ends[-1])
        # If the block ends at the position itself, bytes that end its last character may follow in the next block.
        while len(found) < len(chars) and chars[len(found)] < before:
            found.append(start + int(np.searchsorted(ends, chars[len(found)], side="right")))
    return found + [len(ids)] * (len(chars) - len(found))
