"""What a score hides: how it depends on the context seen and on the model's confidence."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqlm.core.devices import in_double
from seqlm.core.metrics import Nats, perplexity
from seqlm.ngrams.models.smoothing import NGramModel
from seqlm.rnn.network import Network
from seqlm.rnn.scoring import window_nll
from seqlm.rnn.surprisals import parts_in_double, tokens_at_once

NUM_POSITIONS = 128
"""Tokens of context over which a model's warm-up is followed."""
_MAX_WINDOWS = 512
_MAX_TOKENS = 5_000
"""Tokens whose whole distributions are looked at."""
_NUM_BINS = 10


@dataclass(frozen=True)
class Predictor:
    """What the diagnostics ask of a model, whether it counts or is a network."""

    window_nll: Callable[[NDArray[np.int64]], Nats]
    """From windows ``(B, T)`` to surprisals of their tokens 2..T, ``(B, T - 1)``, each window on its own."""
    distributions: Callable[[NDArray[np.int64]], Iterator[NDArray[np.float64]]]
    """From a stream of N tokens to p of every token at places 2..N: parts ``(n, V)`` of bounded size, in order."""


def network_predictor(network: Network) -> Predictor:
    """Return a network as a predictor."""
    at_once = tokens_at_once(network.vocab_size)

    def as_tokens(ids: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(ids).to(next(network.parameters()).device)

    @torch.no_grad()
    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        state = network.initial_state(1)
        for inputs in torch.split(as_tokens(ids[:-1]), at_once):
            logits, state = network(inputs[None], state)
            for part in parts_in_double(logits[0]):
                yield torch.log_softmax(in_double(part), -1).exp().cpu().numpy()

    return Predictor(lambda windows: window_nll(network, as_tokens(windows)), distributions)


def counting_predictor(model: NGramModel) -> Predictor:
    """Return an n-gram model as a predictor."""

    def window_nll(windows: NDArray[np.int64]) -> Nats:
        with np.errstate(divide="ignore"):
            return -np.log(np.stack([model.probs(window) for window in windows]))

    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        span = max(model.order - 1, 1)
        for end in range(1, len(ids)):
            yield model.next_distribution(ids[max(end - span, 0) : end])[None]

    return Predictor(window_nll, distributions)


def diagnose(predictor: Predictor, ids: NDArray[np.integer]) -> dict[str, Any]:
    """Return what is known of a model beside its score on a stream: positions and calibration."""
    return {
        "positions": perplexity_by_position(predictor, ids),
        "calibration": calibration_rows(predictor, ids),
    }


def perplexity_by_position(predictor: Predictor, ids: NDArray[np.integer]) -> list[float | None]:
    """Return perplexity against the number of tokens of context, from one token on; None where it is infinite.

    Windows of the text, spread evenly over it, are each read from the zero state.
    """
    length = min(NUM_POSITIONS + 1, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, _MAX_WINDOWS).astype(np.int64))
    windows = np.asarray(ids)[starts[:, None] + np.arange(length)].astype(np.int64)
    values = [perplexity(float(total), len(starts)) for total in predictor.window_nll(windows).sum(0)]
    return [value if np.isfinite(value) else None for value in values]


def calibration_rows(predictor: Predictor, ids: NDArray[np.integer]) -> list[tuple[float, float, int]]:
    """Return how often the likeliest token is right, by the probability it was given.

    Rows of confidence (the mean in a bin), accuracy and tokens. A calibrated model is right
    as often as it says.
    """
    stream = np.asarray(ids[: _MAX_TOKENS + 1], np.int64)
    tops = [(probs.max(1), probs.argmax(1)) for probs in predictor.distributions(stream)]
    confidence, likeliest = (np.concatenate(parts) for parts in zip(*tops, strict=True))
    right = likeliest == stream[1:]
    bins = np.minimum((confidence * _NUM_BINS).astype(int), _NUM_BINS - 1)
    rows = []
    for index in np.unique(bins):
        inside = bins == index
        rows.append((float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum())))
    return rows
