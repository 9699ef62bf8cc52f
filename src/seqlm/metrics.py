"""Perplexity and bits per character, and the scoring of whole streams."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from seqlm.rnn.building import Model

_CHUNK = 4096


def perplexity(total_nats: float, num_tokens: int) -> float:
    """Return exp(total nats / tokens) (8.4.8); infinity where it is too large for a float."""
    try:
        return math.exp(total_nats / num_tokens)
    except OverflowError:  # nan stays nan
        return math.inf


def bits_per_character(total_nats: float, num_chars: int) -> float:
    """Return total nats / ln 2 / characters."""
    return total_nats / math.log(2) / num_chars


@torch.no_grad()
def stream_nats(model: Model, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> NDArray[np.float64]:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The model starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    device = next(model.parameters()).device
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
    state = model.initial_state(1)
    nats = np.empty(max(len(stream) - 1, 0))
    for start in range(0, len(nats), chunk):
        end = min(start + chunk, len(nats))
        logits, state = model(stream[None, start:end], state)
        losses = F.cross_entropy(logits[0].double(), stream[start + 1 : end + 1], reduction="none")
        nats[start:end] = losses.cpu().numpy()
    return nats
