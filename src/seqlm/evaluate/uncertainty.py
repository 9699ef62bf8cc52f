"""The uncertainty of a figure on the test split, and of the difference between two models.

The test text is cut into blocks of neighbouring text, which are drawn with replacement again and again (block
bootstrap): neighbouring tokens are not independent. All models are cut at the same positions of the text, whatever
their tokens, so that two models can be compared on the same draws. Blocks differ a little in length, so the bits of a
draw are divided by the characters drawn.

This covers the choice of the text, not that of the seed: the same run trained from another seed is another model.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import ScoredText

NUM_BLOCKS = 50
_NUM_DRAWS = 2000
_PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True)
class Bootstrap:
    """Bits per character of one model on every draw."""

    values: NDArray[np.float64]
    """nan for a draw without any character, which happens if the text is very short."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % percentile interval."""
        low, high = np.nanpercentile(self.values, _PERCENTILES)
        return float(low), float(high)

    def compare(self, other: "Bootstrap") -> str:
        """Return whether this model is "better", "worse" or "not told apart" from another on the same draws."""
        low, high = np.nanpercentile(self.values - other.values, _PERCENTILES)
        return "better" if high < 0 else "worse" if low > 0 else "not told apart"


def bootstrap_bits(nats: Nats, text: ScoredText, seed: int) -> Bootstrap:
    """Return bits per character of a model on draws of the test text's blocks; equal seeds give equal draws."""
    positions = (text.ends[1:] - 1) / text.ends[-1]
    blocks = np.minimum((positions * NUM_BLOCKS).astype(np.int64), NUM_BLOCKS - 1)
    bits = np.bincount(blocks, weights=text.with_unknown_cost(nats) / math.log(2), minlength=NUM_BLOCKS)
    chars = np.bincount(blocks, weights=_scored_chars(text), minlength=NUM_BLOCKS)
    chosen = np.random.default_rng(seed).integers(NUM_BLOCKS, size=(_NUM_DRAWS, NUM_BLOCKS))
    with np.errstate(invalid="ignore"):
        return Bootstrap(bits[chosen].sum(axis=1) / chars[chosen].sum(axis=1))


def _scored_chars(text: ScoredText) -> NDArray[np.float64]:
    """Return the scored characters of each scored token; separators between words are shared equally by the words."""
    lengths = np.diff(text.ends)
    return np.asarray(lengths + (text.scored_chars - lengths.sum()) / max(text.num_scored, 1))
