"""How surprisal depends on the amount of context, and whether a model's probabilities can be trusted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nll, perplexity

NUM_POSITIONS = 128
"""Positions after the zero state for which a model's perplexity is reported."""
MAX_WINDOWS = 512
MAX_TOKENS = 5_000
"""Tokens whose whole distributions are examined."""
NUM_BINS = 10


@dataclass(frozen=True)
class Predictor:
    """What the diagnostics need of a model."""

    window_nll: Callable[[NDArray[np.int64]], Nll]
    """From windows ``(B, T)`` to surprisals of their tokens 2 to T, ``(B, T - 1)``, each window read on its own."""
    distributions: Callable[[NDArray[np.int64]], Iterator[NDArray[np.float64]]]
    """From a stream of N tokens to p of every token at positions 2 to N: parts ``(n, V)`` of bounded size, in order."""


def diagnose(predictor: Predictor, ids: NDArray[np.integer]) -> dict[str, Any]:
    """Return a model's perplexity by position and its calibration on a stream."""
    return {"positions": perplexity_by_position(predictor, ids), "calibration": calibration_rows(predictor, ids)}


def perplexity_by_position(predictor: Predictor, ids: NDArray[np.integer]) -> list[float | None]:
    """Return perplexity by the number of tokens of context, from one token on; None if it is infinite.

    Evenly spaced windows of the text are each read from the zero state.
    """
    length = min(NUM_POSITIONS + 1, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, MAX_WINDOWS).astype(np.int64))
    windows = np.asarray(ids)[starts[:, None] + np.arange(length)].astype(np.int64)
    values = [perplexity(float(total), len(starts)) for total in predictor.window_nll(windows).sum(0)]
    return [value if np.isfinite(value) else None for value in values]


def calibration_rows(predictor: Predictor, ids: NDArray[np.integer]) -> list[tuple[float, float, int]]:
    """Return how often the most likely token is right, binned by its probability.

    Rows of confidence (the mean probability in a bin), accuracy, and number of tokens. In a calibrated model,
    confidence and accuracy are equal.
    """
    stream = np.asarray(ids[: MAX_TOKENS + 1], np.int64)
    tops = [(probs.max(1), probs.argmax(1)) for probs in predictor.distributions(stream)]
    confidence, most_likely = (np.concatenate(parts) for parts in zip(*tops, strict=True))
    right = most_likely == stream[1:]
    bins = np.minimum((confidence * NUM_BINS).astype(int), NUM_BINS - 1)
    rows = []
    for index in np.unique(bins):
        inside = bins == index
        rows.append((float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum())))
    return rows
