"""Evaluation on val during training: all of a short val, evenly spaced passages of a long one."""

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.core.text import evenly_spaced
from seqlm.rnn.array_network import HasArrays
from seqlm.rnn.logits import tokens_at_once
from seqlm.rnn.scoring import rows_nll, stream_nll

Positions = NDArray[np.int64]

_NUM_PASSAGES = 64
_MAX_PARTS, _MIN_PART_TOKENS = 32, 512
"""A val that is read completely is read in this many parts at once, or fewer if they would be shorter."""
_WARM_UP = 64
"""Tokens at the beginning of a passage that only warm up the state."""


def val_nll(network: HasArrays, ids: NDArray[np.integer], max_tokens: int | None) -> Nats:
    """Return -log p of the tokens of a split that an evaluation reads.

    Up to ``max_tokens`` are all read; many of them in parallel parts, each after a warm-up on the text before it. If
    there are more, 64 evenly spaced passages are read in parallel, each after a warm-up; ``max_tokens`` include those.
    """
    num_targets = len(ids) - 1
    if max_tokens is not None and len(ids) > max_tokens:
        length = max_tokens // _NUM_PASSAGES
        starts = evenly_spaced(_NUM_PASSAGES, length, num_targets)
        return _windows_nll(network, ids, starts, length, starts + min(_WARM_UP, length // 2))
    num_parts = min(_MAX_PARTS, num_targets // _MIN_PART_TOKENS)
    if num_parts < 2:
        return stream_nll(network, ids)
    length = _WARM_UP + -(-(num_targets - _WARM_UP) // num_parts)
    starts = np.minimum(np.arange(num_parts) * (length - _WARM_UP), num_targets - length)
    return _windows_nll(network, ids, starts, length, np.append(0, starts[:-1] + length))


def _windows_nll(
    network: HasArrays, ids: NDArray[np.integer], starts: Positions, length: int, scored_from: Positions
) -> Nats:
    """Return -log p of windows of ``length`` targets that are read in parallel, each from its position in the text
    ``scored_from`` on."""
    windows = ids[starts[:, None] + np.arange(length + 1)].astype(np.int64)
    nll = rows_nll(network, windows, max(tokens_at_once(network.arrays.vocab_size) // len(starts), 1))
    return nll[starts[:, None] + np.arange(length) >= scored_from[:, None]]
