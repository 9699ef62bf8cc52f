"""Scoring of whole streams by a network."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.metrics import Nats
from seqlm.rnn.network import Network
from seqlm.rnn.surprisals import surprisals, tokens_at_once

_CHUNK = 4096
"""Tokens that are read at once."""


def is_large(vocab_size: int) -> bool:
    """Whether the logits of tokens that are read at once are too many to stand in memory together."""
    return tokens_at_once(vocab_size) < _CHUNK


@torch.no_grad()
def stream_nll(network: Network, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> Nats:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    device = next(network.parameters()).device
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
    state = network.initial_state(1)
    nats = np.empty(max(len(stream) - 1, 0))
    for start in range(0, len(nats), chunk):
        end = min(start + chunk, len(nats))
        inputs, targets = stream[None, start:end], stream[None, start + 1 : end + 1]
        if is_large(network.vocab_size):
            found, state = network.nats(inputs, targets, state)
            nats[start:end] = found[0].numpy()
        else:
            logits, state = network(inputs, state)
            nats[start:end] = surprisals(logits[0], targets[0])
    return nats


@torch.no_grad()
def window_nll(network: Network, windows: Tensor) -> Nats:
    """Return -log p of tokens 2..T of windows ``(B, T)``, each read from the zero state; shape ``(B, T - 1)``."""
    if is_large(network.vocab_size):
        return _nats_of_lanes(network, windows)
    found = []
    for part in torch.split(windows, max(tokens_at_once(network.vocab_size) // windows.shape[1], 1)):
        logits, _ = network(part[:, :-1], network.initial_state(len(part)))
        found.append(surprisals(logits.flatten(0, 1), part[:, 1:].flatten()).reshape(len(part), -1))
    return np.concatenate(found)


def _nats_of_lanes(network: Network, lanes: Tensor) -> Nats:
    """Return what :func:`window_nll` does, for all windows at once, some steps at a time."""
    state, nats = network.initial_state(len(lanes)), np.empty((len(lanes), lanes.shape[1] - 1))
    num_steps = max(_CHUNK // len(lanes), 1)
    for start in range(0, nats.shape[1], num_steps):
        end = min(start + num_steps, nats.shape[1])
        found, state = network.nats(lanes[:, start:end], lanes[:, start + 1 : end + 1], state)
        nats[:, start:end] = found.numpy()
    return nats
