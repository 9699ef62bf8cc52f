"""-log p of the tokens of streams and of windows under a network."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.metrics import Nats
from seqlm.rnn.logits import is_large, tokens_at_once
from seqlm.rnn.network import Network

_CHUNK = 4096
"""Tokens that are read at once."""


def stream_nll(network: Network, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> Nats:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(network.device)
    return _nll(network, stream[None], chunk).reshape(-1)


def window_nll(network: Network, windows: Tensor) -> Nats:
    """Return -log p of tokens 2..T of windows ``(B, T)``, each read from the zero state; shape ``(B, T - 1)``."""
    num_windows, length = windows.shape
    if is_large(network.vocab_size):
        return _nll(network, windows, max(_CHUNK // num_windows, 1))
    parts = torch.split(windows, max(tokens_at_once(network.vocab_size) // length, 1))
    return np.concatenate([_nll(network, part, length) for part in parts])


def _nll(network: Network, rows: Tensor, num_steps: int) -> Nats:
    """Return -log p of tokens 2..T of ``rows`` (B, T), which are read together, ``num_steps`` at a time."""
    state, found = network.initial_state(len(rows)), np.empty((len(rows), max(rows.shape[1] - 1, 0)))
    for start in range(0, found.shape[1], num_steps):
        end = min(start + num_steps, found.shape[1])
        nll, state = network.token_nll(rows[:, start:end], rows[:, start + 1 : end + 1], state)
        found[:, start:end] = nll.numpy()
    return found
