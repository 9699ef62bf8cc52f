"""Scoring of whole streams by a network."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from seqlm.core.devices import in_double
from seqlm.core.metrics import Nats
from seqlm.rnn.network import Network

_CHUNK = 4096
_LOGITS_BYTES = 1 << 26
"""Most bytes of a network's logits at once: a large vocabulary must not take the memory."""
_DOUBLES_BYTES = 1 << 24
"""Most bytes of what is computed of them in double precision at once."""


@torch.no_grad()
def stream_nats(network: Network, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> Nats:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens,
    of fewer where the vocabulary is large.
    """
    device = next(network.parameters()).device
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
    state = network.initial_state(1)
    nats = np.empty(max(len(stream) - 1, 0))
    chunk = min(chunk, tokens_at_once(network.vocab_size))
    for start in range(0, len(nats), chunk):
        end = min(start + chunk, len(nats))
        logits, state = network(stream[None, start:end], state)
        nats[start:end] = surprisals(logits[0], stream[start + 1 : end + 1])
    return nats


def tokens_at_once(vocab_size: int) -> int:
    """Return for how many tokens, one or more, a network may hold its logits at once."""
    return max(_LOGITS_BYTES // (4 * vocab_size), 1)


def parts_in_double(logits: Tensor) -> tuple[Tensor, ...]:
    """Return logits ``(N, V)`` in parts so small that doubles made of one take bounded memory; views."""
    return torch.split(logits, max(_DOUBLES_BYTES // (8 * logits.shape[1]), 1))


def surprisals(logits: Tensor, targets: Tensor) -> Nats:
    """Return -log p of ``targets`` (N,) under ``logits`` (N, V), computed in double precision."""
    nats, start = np.empty(len(targets)), 0
    for part in parts_in_double(logits):
        end, doubles = start + len(part), in_double(part)
        losses = F.cross_entropy(doubles, targets[start:end].to(doubles.device), reduction="none")
        nats[start:end], start = losses.cpu().numpy(), end
    return nats
