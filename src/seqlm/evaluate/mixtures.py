"""Mixtures of two models' distributions."""

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.score.measures import Score

_MIX_WEIGHTS = np.linspace(0.0, 1.0, 41)


def mix(first: Nats, second: Nats, weight: float) -> Nats:
    """Return the surprisals of ``weight * p_first + (1 - weight) * p_second``."""
    with np.errstate(divide="ignore"):
        return -np.log(weight * np.exp(-first) + (1 - weight) * np.exp(-second))


def best_mixture(first: Score, second: Score) -> tuple[Score, float]:
    """Return the mixture of two models over one kind of token, its weight chosen on val."""
    losses = [float(mix(first.nats["val"], second.nats["val"], weight).sum()) for weight in _MIX_WEIGHTS]
    weight = float(_MIX_WEIGHTS[int(np.argmin(losses))])
    mixed = {split: mix(first.nats[split], second.nats[split], weight) for split in first.nats}
    return Score(f"{first.name}+{second.name}", first.kind, mixed), weight
