"""Looks at val in the midst of a training: the whole of a short one, passages of a long one."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from seqlm.core.metrics import Nats
from seqlm.rnn.network import Network
from seqlm.rnn.scoring import stream_nats

_PASSAGES = 64
_WARM_UP = 64
"""Tokens at the beginning of a passage that only bring the state to where text is going on."""
_LOGITS_AT_ONCE = 1 << 22


def look_nats(network: Network, ids: NDArray[np.integer], max_tokens: int | None) -> Nats:
    """Return -log p of the tokens of a split that a look reads.

    Of up to ``max_tokens`` all are read, as one stream. Of more, 64 passages are, evenly
    spread and all at once, each after a warm-up, ``max_tokens`` together with their warm-up.
    """
    if max_tokens is None or len(ids) <= max_tokens:
        return stream_nats(network, ids)
    return _passage_nats(network, ids, max_tokens // _PASSAGES)


@torch.no_grad()
def _passage_nats(network: Network, ids: NDArray[np.integer], length: int) -> Nats:
    device = next(network.parameters()).device
    starts = np.linspace(0, len(ids) - length - 1, _PASSAGES).astype(np.int64)
    warm_up = min(_WARM_UP, length // 2)
    state, nats = network.initial_state(_PASSAGES), np.empty((_PASSAGES, length))
    chunk = max(_LOGITS_AT_ONCE // (network.vocab_size * _PASSAGES), 1)
    for first in range(0, length, chunk):
        steps = np.arange(first, min(first + chunk, length) + 1)
        tokens = torch.from_numpy(ids[starts[:, None] + steps].astype(np.int64)).to(device)  # (B, T + 1)
        logits, state = network(tokens[:, :-1], state)
        losses = F.cross_entropy(logits.flatten(0, 1).cpu().double(), tokens[:, 1:].flatten().cpu(), reduction="none")
        nats[:, steps[:-1]] = losses.view(_PASSAGES, -1).numpy()
    return nats[:, warm_up:].ravel()
