"""Perplexity and bits per character."""

import math

import numpy as np
from numpy.typing import NDArray

Nll = NDArray[np.float64]
"""Surprisals -log p, one for each token of a stream except the first."""


def perplexity(total_nll: float, num_tokens: int) -> float:
    """Return exp(total nats / tokens) (8.4.8); infinity if it is too large for a float."""
    try:
        return math.exp(total_nll / num_tokens)
    except OverflowError:  # NaN stays NaN
        return math.inf


def bits_per_character(total_nll: float, num_chars: int) -> float:
    """Return total nats / ln 2 / characters."""
    return total_nll / math.log(2) / num_chars
