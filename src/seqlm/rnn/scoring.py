"""Scoring of whole streams by a network."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from seqlm.rnn.network import Network

_CHUNK = 4096


@torch.no_grad()
def stream_nats(network: Network, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> NDArray[np.float64]:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    device = next(network.parameters()).device
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
    state = network.initial_state(1)
    nats = np.empty(max(len(stream) - 1, 0))
    for start in range(0, len(nats), chunk):
        end = min(start + chunk, len(nats))
        logits, state = network(stream[None, start:end], state)
        losses = F.cross_entropy(logits[0].double(), stream[start + 1 : end + 1], reduction="none")
        nats[start:end] = losses.cpu().numpy()
    return nats
