"""-log p of the tokens of streams and of windows under a network."""

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.rnn.array_network import ArrayNetwork, HasArrays, Ids
from seqlm.rnn.logits import is_large, tokens_at_once

_CHUNK = 4096
"""Tokens that are read at once."""


def stream_nll(network: HasArrays, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> Nats:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    return rows_nll(network, np.asarray(ids, np.int64)[None], chunk).reshape(-1)


def window_nll(network: HasArrays, windows: Ids) -> Nats:
    """Return -log p of tokens 2..T of windows ``(B, T)``, each read from the zero state; shape ``(B, T - 1)``."""
    num_windows, length = windows.shape
    arrays = network.arrays
    if is_large(arrays.vocab_size):
        return rows_nll(network, windows, max(_CHUNK // num_windows, 1))
    at_once = max(tokens_at_once(arrays.vocab_size) // length, 1)
    parts = [windows[start : start + at_once] for start in range(0, num_windows, at_once)]
    return np.concatenate([rows_nll(network, part, length) for part in parts])


def rows_nll(network: HasArrays, rows: Ids, num_steps: int) -> Nats:
    """Return -log p of tokens 2..T of ``rows`` (B, T), which are read together, ``num_steps`` at a time."""
    arrays: ArrayNetwork = network.arrays
    state, found = arrays.initial_state(len(rows)), np.empty((len(rows), max(rows.shape[1] - 1, 0)))
    for start in range(0, found.shape[1], num_steps):
        end = min(start + num_steps, found.shape[1])
        found[:, start:end], state = arrays.token_nll(rows[:, start:end], rows[:, start + 1 : end + 1], state)
    return found
