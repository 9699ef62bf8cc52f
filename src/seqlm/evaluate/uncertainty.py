"""How far a figure on the test split may be off, and whether one model is better than another.

The test split is cut into blocks of neighbouring text, which are drawn again and again
with replacement (block bootstrap): blocks, because neighbouring tokens are no independent
draws. All models are cut at the same places of the text, whatever their tokens, so that
two models can be compared on the same draws.

This covers the choice of the text, and not that of the seed: the same run trained from
another seed is another model.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.score.heldout.splits import Stream

NUM_BLOCKS = 50
_NUM_DRAWS = 2000
_PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True)
class Draws:
    """Bits per character of one model on every draw."""

    values: NDArray[np.float64]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % percentile interval."""
        low, high = np.percentile(self.values, _PERCENTILES)
        return float(low), float(high)

    def compare(self, other: "Draws") -> str:
        """Return "better", "worse" or "not told apart" of this model against another, on the same draws."""
        low, high = np.percentile(self.values - other.values, _PERCENTILES)
        return "better" if high < 0 else "worse" if low > 0 else "not told apart"


def draw_bits(nats: Nats, stream: Stream, seed: int) -> Draws:
    """Return bits per character of a model on draws of the test split's blocks; equal seeds, equal draws."""
    places = (stream.ends[1:] - 1) / stream.ends[-1]
    blocks = np.minimum((places * NUM_BLOCKS).astype(np.int64), NUM_BLOCKS - 1)
    sums = np.bincount(blocks, weights=stream.with_unknown_cost(nats), minlength=NUM_BLOCKS)
    chosen = np.random.default_rng(seed).integers(NUM_BLOCKS, size=(_NUM_DRAWS, NUM_BLOCKS))
    return Draws(sums[chosen].sum(axis=1) / math.log(2) / stream.scored_chars)
