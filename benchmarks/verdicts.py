"""How often `evaluate` calls some difference significant although no model differs from another, by simulation.

    python benchmarks/verdicts.py

As in the pipeline, test has fifty blocks, and the deviation between parts of the text is estimated from the difference
between two reference models, on their blocks of test and on some folds. Each difference from the best model is normally
distributed. Between parts, it deviates more than between blocks, by a ratio of 1 (blocks are independent) to 4.
Neighbouring blocks are uncorrelated, or have correlation 0.5. The differences of several models are uncorrelated, or
correlated because they have the best model in common, or more than that.

Writes benchmarks/results/verdicts.csv: for each case, the share of simulated texts on which some difference is called
significant (``error``), and the share of differences of six standard errors that are found (``power``); and both for
the procedure before: quantiles of t with 49 degrees of freedom, and Holm's correction. The standard error of a share of
5 % is 0.15 %.
"""

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.evaluate.uncertainty import LEVEL, IntervalScales, critical_value, student_inside
from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import NUM_BLOCKS

RESULTS = Path(__file__).resolve().parent / "results" / "verdicts.csv"
COLUMNS = (
    "neighbours", "comparisons", "correlation", "folds", "ratio", "error", "power", "error_before", "power_before"
)  # fmt: skip
TEXTS, CHUNK = 20_000, 1000
COMPARISONS, CORRELATIONS, FOLDS = (10, 50, 80), (0.0, 0.5, 0.9), (5, 8, 20)
RATIOS = {0.0: (1, 1.3, 2, 4), 0.5: (2, 4)}
"""Correlation of neighbouring blocks -> ratios; 0.5 alone makes the ratio 1.7."""
EFFECT = 6

Values = NDArray[np.float32]


def blocks_of(rng: np.random.Generator, num_models: int, correlation: float, neighbours: float) -> Values:
    """Return differences without an effect, those of the reference models first; shape (CHUNK, num_models, blocks)."""

    def draw() -> Values:
        common, own = (rng.standard_normal((CHUNK, size), dtype=np.float32) for size in (1, num_models))
        return np.float32(correlation**0.5) * common + np.float32((1 - correlation) ** 0.5) * own

    found = [draw()]
    for _ in range(NUM_BLOCKS - 1):
        found.append(np.float32(neighbours) * found[-1] + np.float32((1 - neighbours**2) ** 0.5) * draw())
    return np.stack(found, axis=-1)


def quantile_before(num_comparisons: int) -> float:
    t = np.linspace(0, 10, 100_001)
    return float(t[np.searchsorted(student_inside(t, NUM_BLOCKS - 1), 1 - LEVEL / num_comparisons)])


def shares(differences: Values, margins: Values, effect: float) -> tuple[float, float]:
    is_called = np.abs(differences) > margins
    return float(is_called.any(axis=1).mean()), float((differences + effect > margins).mean())


def check(blocks: Values, fold_bits: Values, margins: Values, means: Values) -> None:
    """Fail if the margins of one text are not those of the pipeline."""
    moved = blocks + (means - blocks.mean(axis=-1))[:, None]
    none = np.zeros(NUM_BLOCKS)
    folds = Folds([fold_bits.tolist(), [0.0] * len(fold_bits)], [moved[0].tolist(), none.tolist()])
    scales = IntervalScales.of_folds(folds, NUM_BLOCKS)
    names = {str(index): values for index, values in enumerate(moved[1:])} | {"best": none}
    found = scales.compare_pairs(names, [(name, "best") for name in names if name != "best"])
    np.testing.assert_allclose([difference.margin for difference in found.values()], margins, rtol=1e-3)


def rows_of(neighbours: float, num_comparisons: int, correlation: float) -> Iterator[tuple[float, ...]]:
    rng = np.random.default_rng([int(10 * neighbours), num_comparisons, int(10 * correlation)])
    means, deviations = [], []
    for _ in range(TEXTS // CHUNK):
        blocks = blocks_of(rng, num_comparisons + 1, correlation, neighbours)
        means.append(blocks.mean(axis=-1))
        deviations.append(blocks.std(axis=-1, ddof=1))
    all_means, deviation = np.concatenate(means), np.concatenate(deviations)
    within = float(np.sqrt(np.square(deviation).mean() / NUM_BLOCKS))
    for num_folds, ratio in product(FOLDS, RATIOS[neighbours]):
        error = ratio * within
        parts = all_means * np.float32(error / all_means.std())
        fold_bits = error * rng.standard_normal((TEXTS, num_folds), dtype=np.float32)
        ratios = fold_bits.std(axis=1, ddof=1, keepdims=True) / deviation[:, :1] * NUM_BLOCKS**0.5
        scaled = deviation[:, 1:] / NUM_BLOCKS**0.5
        critical = critical_value(num_comparisons, NUM_BLOCKS // 2, num_folds - 1)
        margins = critical * ratios * scaled
        before = quantile_before(num_comparisons) * np.maximum(ratios * (1 + 1 / num_folds) ** 0.5, 1) * scaled
        check(blocks[-1], fold_bits[-1], margins[-1], parts[-1])
        found = [share for each in (margins, before) for share in shares(parts[:, 1:], each, EFFECT * error)]
        yield neighbours, num_comparisons, correlation, num_folds, ratio, *found


def main() -> None:
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for case in product(RATIOS, COMPARISONS, CORRELATIONS):
            for row in rows_of(*case):
                writer.writerow([f"{value:.3g}" for value in row])
                print(*(f"{value:.3g}" for value in row), flush=True)


if __name__ == "__main__":
    main()
