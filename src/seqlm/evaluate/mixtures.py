"""Mixtures of several models' distributions, linear, with weights that are chosen on val."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.score.store import DYNAMIC, Score

_LEAST_WEIGHT = 0.05
"""A member of less weight is left out."""
_NUM_STEPS = 200

Weights = NDArray[np.float64]


def mix(nats: Sequence[Nats], weights: Weights) -> Nats:
    """Return the surprisals of the mixture of models whose surprisals are ``nats``."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(sum(weight * np.exp(-each) for weight, each in zip(weights, nats, strict=True))))


def choose_weights(nats: Sequence[Nats]) -> Weights:
    """Return the weights that make a text likeliest, by expectation maximisation from equal ones.

    The likelihood is concave in the weights, so that there is one best choice. Tokens that
    no member gives a chance have no say.
    """
    probs = np.exp(-np.stack([np.asarray(each) for each in nats]))
    probs = probs[:, probs.any(axis=0)]
    weights = np.full(len(probs), 1 / len(probs))
    if not probs.size:
        return weights
    for _ in range(_NUM_STEPS):
        shares = weights[:, None] * probs
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return weights


def best_mixture(members: Sequence[Score], *, keep: int = 0) -> tuple[Score, dict[str, float]]:
    """Return the mixture of models over one kind of token, and its members' weights, chosen on val.

    Of the members, those that follow the first ``keep`` are left out where their weight is negligible.
    """
    members = list(members)
    weights = choose_weights([member.nats["val"] for member in members])
    while len(members) > keep and weights[keep:].min(initial=1.0) < _LEAST_WEIGHT:
        del members[keep + int(np.argmin(weights[keep:]))]
        weights = choose_weights([member.nats["val"] for member in members])
    splits = [split for split in members[0].nats if all(split in member.nats for member in members)]
    mixed = {split: mix([member.nats[split] for member in members], weights) for split in splits}
    chosen = dict(zip((member.name for member in members), weights.tolist(), strict=True))
    return Score(mixture_name(list(chosen)), members[0].kind, mixed), chosen


def mixture_name(names: Sequence[str]) -> str:
    """Return what a mixture is called: its members joined by ``+``, the mark of those that adapt behind the last."""
    adapting = [name.removesuffix(DYNAMIC) for name in names if name.endswith(DYNAMIC)]
    rest = [name for name in names if not name.endswith(DYNAMIC)]
    return "+".join([*adapting[:-1], adapting[-1] + DYNAMIC, *rest] if adapting else rest)
