"""How many logits are in memory at once, and from logits to probabilities."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp

_LOGITS_AT_ONCE = 1 << 22
"""Most logits in memory at once: with a large vocabulary those of a whole text would fill it."""
_PROBABILITIES_AT_ONCE = 1 << 21
_LARGE_VOCAB = 1024


def tokens_at_once(vocab_size: int) -> int:
    """Return for how many tokens, at least one, the logits may be in memory at once."""
    return max(_LOGITS_AT_ONCE // vocab_size, 1)


def is_large(vocab_size: int) -> bool:
    """Whether a vocabulary is so large that the logits of a text take more time and memory than its states."""
    return vocab_size > _LARGE_VOCAB


def probabilities(logits: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    """Yield the probabilities of all tokens under ``logits`` (N, V), in parts ``(n, V)`` of bounded size."""
    num_rows = max(_PROBABILITIES_AT_ONCE // logits.shape[1], 1)
    for start in range(0, len(logits), num_rows):
        part = np.asarray(logits[start : start + num_rows], np.float64)
        weights = exp(part - part.max(1, keepdims=True))
        yield weights / weights.sum(1, keepdims=True)
