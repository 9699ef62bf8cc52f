"""How often an epoch trains on each token of a text, depending on how minibatches are cut (exercise 8.3-5).

    python benchmarks/token_coverage.py

For the 10,000 characters, 32 rows and 35 steps of section 8.5 it computes, over all random offsets, the chance that a
token is among an epoch's targets, and writes the least, the mean and the greatest of these chances to
benchmarks/results/token_coverage.csv. "ring" cuts the text as if its end were followed by its beginning, from a random
place.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from seqlm.train.minibatches import minibatches

NUM_TOKENS, BATCH_SIZE, NUM_STEPS = 10_000, 32, 35
RESULTS = Path(__file__).resolve().parent / "results" / "token_coverage.csv"
Chances = np.ndarray
"""For each token, the chance that it is a target; the first token never is one."""


class FixedOffset(np.random.Generator):
    """A generator that draws one offset and leaves the order of subsequences as it is."""

    def __init__(self, offset: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.offset = offset

    def integers(self, *_: object, **__: object) -> int:  # type: ignore[override]
        return self.offset

    def permutation(self, x: int) -> np.ndarray:  # type: ignore[override]
        return np.arange(x)


def targets(sampling: Any, offset: int) -> np.ndarray:
    text = np.arange(NUM_TOKENS)
    return np.concatenate(
        [batch.ravel() for _, batch in minibatches(sampling, text, BATCH_SIZE, NUM_STEPS, FixedOffset(offset))]
    )


def sequential(offsets: range) -> Chances:
    counts = [np.bincount(targets("sequential", offset), minlength=NUM_TOKENS) for offset in offsets]
    return np.array(np.mean(counts, 0))


def random(offsets: range) -> Chances:
    chances = []
    for offset in offsets:
        num_subsequences = (NUM_TOKENS - offset - 1) // NUM_STEPS
        used = len(targets("random", offset)) // NUM_STEPS
        chance = np.zeros(NUM_TOKENS)
        # Which subsequences are left out of the last minibatch is random: each has the same chance.
        chance[offset + 1 : offset + 1 + num_subsequences * NUM_STEPS] = used / num_subsequences
        chances.append(chance)
    return np.array(np.mean(chances, 0))


def ring(_: range) -> Chances:
    found = np.bincount(targets("sequential", 0), minlength=NUM_TOKENS)
    return np.full(NUM_TOKENS, found.mean())  # every place is as likely as any other


def main() -> None:
    every = range(NUM_STEPS)
    ways = {
        "sequential, offset 0": sequential(range(1)),
        "sequential, random offset": sequential(every),
        "random, offset 0": random(range(1)),
        "random, random offset": random(every),
        "sequential, ring": ring(every),
    }
    rows = [
        (way, chances[1:].min(), chances[1:].mean(), chances[1:].max(), int((chances[1:] == 0).sum()),
         int((chances[1:] < chances.max() - 1e-9).sum()))
        for way, chances in ways.items()
    ]  # fmt: skip
    columns = ["way", "least", "mean", "greatest", "never", "below_greatest"]
    pd.DataFrame(rows, columns=columns).to_csv(RESULTS, index=False, float_format="%.4f", lineterminator="\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
