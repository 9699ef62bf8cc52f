"""Looks at val in the midst of a training: the whole of a short one, passages of a long one."""

import numpy as np
import torch
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.rnn.network import Network
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.surprisals import tokens_at_once

Places = NDArray[np.int64]

_PASSAGES = 64
_PARTS, _SHORTEST_PART = 32, 512
"""A val that is read whole is read in so many parts at once, or fewer, none of fewer tokens."""
_WARM_UP = 64
"""Tokens at the beginning of a passage that only bring the state to where text is going on."""


def val_nll(network: Network, ids: NDArray[np.integer], max_tokens: int | None) -> Nats:
    """Return -log p of the tokens of a split that a look reads.

    Of up to ``max_tokens`` all are read; where they are many, in parts all at once, each but the first
    after a warm-up on the text before it. Of more, 64 passages are, evenly spread and all at once,
    each after a warm-up, ``max_tokens`` together with their warm-up.
    """
    num_targets = len(ids) - 1
    if max_tokens is not None and len(ids) > max_tokens:
        length = max_tokens // _PASSAGES
        starts = np.linspace(0, num_targets - length, _PASSAGES).astype(np.int64)
        return _nats_of_windows(network, ids, starts, length, starts + min(_WARM_UP, length // 2))
    num_parts = min(_PARTS, num_targets // _SHORTEST_PART)
    if num_parts < 2:
        return stream_nll(network, ids)
    length = _WARM_UP + -(-(num_targets - _WARM_UP) // num_parts)
    starts = np.minimum(np.arange(num_parts) * (length - _WARM_UP), num_targets - length)
    return _nats_of_windows(network, ids, starts, length, np.append(0, starts[:-1] + length))


@torch.no_grad()
def _nats_of_windows(network: Network, ids: NDArray[np.integer], starts: Places, length: int, counted: Places) -> Nats:
    """Return -log p of what windows of ``length`` targets read, all at once; of each from its place ``counted`` on."""
    device = next(network.parameters()).device
    state, nats = network.initial_state(len(starts)), np.empty((len(starts), length))
    chunk = max(tokens_at_once(network.vocab_size) // len(starts), 1)
    for first in range(0, length, chunk):
        steps = np.arange(first, min(first + chunk, length) + 1)
        tokens = torch.from_numpy(ids[starts[:, None] + steps].astype(np.int64)).to(device)  # (B, T + 1)
        logits, state = network(tokens[:, :-1], state)
        # In single precision: a look need not be more exact, and takes less than half the time on a large vocabulary.
        losses = logits.logsumexp(-1) - logits.gather(-1, tokens[:, 1:, None])[..., 0]
        nats[:, steps[:-1]] = losses.cpu().numpy()
    return nats[starts[:, None] + np.arange(length) >= counted[:, None]]
