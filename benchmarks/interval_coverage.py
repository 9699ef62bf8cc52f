"""How often the intervals of `evaluate` contain what they claim to, by cross-validation and on simulated text.

    python benchmarks/interval_coverage.py

Each text is cut into parts. Each part in turn is test, and each other part in turn is the other passage: the interval
of test should contain its value. All other parts calibrate the interval, as the folds of train do in the pipeline.
Models are Kneser-Ney models over characters, each trained on all parts but the one that it scores. The simulated text
has no models: its bits per character drift over 1,500 characters, and those of a second model follow them in part.
``SEQLM_DATA_DIR`` names a folder with timemachine.txt and tinyshakespeare.txt.

Writes benchmarks/results/interval_coverage.csv: for each text, number of folds, and model or difference between two
models, the number of pairs of test and another part; the share of pairs in which the interval contains the value of the
other part, and its mean half-width, calibrated as in the pipeline, and from the blocks of test alone (expected:
0.95); and what the calibration assumes to be alike for all models: the ratio of the deviation between parts and that
within them, and the correlation of neighbouring blocks.
"""

import csv
import os
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.evaluate.uncertainty import IntervalScales, Scale
from seqlm.heldout.folds import ORDERS as REFERENCES
from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import NUM_BLOCKS
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey

RESULTS = Path(__file__).resolve().parent / "results" / "interval_coverage.csv"
COLUMNS = (
    "text",
    "folds",
    "of",
    "model",
    "pairs",
    "calibrated",
    "half_width",
    "blocks_alone",
    "blocks_half_width",
    "ratio",
    "neighbours",
)
TEXTS = {"The Time Machine": "timemachine.txt", "Tiny Shakespeare": "tinyshakespeare.txt"}
NUM_FOLDS = (5, 8, 20)
ORDERS = (1, 2, 3, 4, 5, 6)
SIMULATED = 300
PART_CHARS, STEP, DRIFT_CHARS = 17_000, 34, 1_500

Parts = dict[str, list[NDArray[np.float64]]]
"""Model -> its bits per character on the blocks of each part."""


def read_ids(name: str) -> tuple[NDArray[np.int64], int]:
    """Return a corpus as characters, cleaned like the book's, and the size of its vocabulary."""
    text = (Path(os.environ["SEQLM_DATA_DIR"]) / name).read_text(encoding="utf-8")
    lines = [re.sub("[^A-Za-z]+", " ", line).strip().lower() for line in text.splitlines()]
    codes = np.frombuffer("".join(lines).encode(), np.uint8)
    characters, ids = np.unique(codes, return_inverse=True)
    return ids + 1, len(characters) + 1


def blocks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([block.mean() for block in np.array_split(values, NUM_BLOCKS)])


def cross_validated(name: str, num_parts: int) -> Parts:
    ids, vocab_size = read_ids(name)
    pieces = np.array_split(ids, num_parts)
    found: Parts = {}
    for index, piece in enumerate(pieces):
        counts = count_ngrams(np.concatenate(pieces[:index] + pieces[index + 1 :]), vocab_size, max(ORDERS))
        for order in ORDERS:
            bits = token_nll(KneserNey(counts, order), piece) / np.log(2)
            found.setdefault(f"order {order}", []).append(blocks_of(bits))
    return found


def simulated(num_parts: int, seed: int) -> Parts:
    """Return bits that drift as a first-order autoregression, and those of a model that follows them in part."""
    rng = np.random.default_rng(seed)
    num_steps = num_parts * PART_CHARS // STEP
    kept = np.exp(-STEP / DRIFT_CHARS)
    drift = np.empty(num_steps)
    drift[0], shocks = rng.normal(), rng.normal(scale=np.sqrt(1 - kept**2), size=num_steps)
    for step in range(1, num_steps):
        drift[step] = kept * drift[step - 1] + shocks[step]
    # The deviation of a character's bits is about 2, so that of the mean of STEP characters is 2 / sqrt(STEP).
    noise = rng.normal(scale=2 / np.sqrt(STEP), size=(3, num_steps))
    bits = {
        f"order {REFERENCES[1]}": 2.5 + 0.25 * drift + 0.9 * noise[0] + 0.5 * noise[1],
        f"order {REFERENCES[0]}": 2 + 0.2 * drift + noise[0],
        "other": 3 + 0.3 * drift + 0.8 * noise[0] + noise[2],
    }
    return {model: [blocks_of(part) for part in np.array_split(values, num_parts)] for model, values in bits.items()}


def folds_without(parts: Parts, test: int, other: int) -> Folds:
    """Return what calibrates the intervals if one part is test and one is the other passage."""
    references = [parts[f"order {order}"] for order in REFERENCES]
    bits = [
        [float(part.mean()) for place, part in enumerate(found) if place not in (test, other)] for found in references
    ]
    return Folds(bits, [found[test].tolist() for found in references])


def values_of(parts: Parts, first: str, second: str | None = None) -> NDArray[np.float64]:
    """Return the blocks of a model, or the differences between two models; shape (parts, blocks)."""
    return np.array(parts[first]) - (0 if second is None else np.array(parts[second]))


def trials(parts: Parts, *names: str) -> Iterator[tuple[float, ...]]:
    """Yield for each pair of parts whether the intervals of one contain the other's value, and their half-widths."""
    values = values_of(parts, *names)
    for test, other in permutations(range(len(values)), 2):
        scales, blocks, found = IntervalScales.of_folds(folds_without(parts, test, other), NUM_BLOCKS), values[test], []
        for scale in (scales.of_model if len(names) == 1 else scales.of_difference, Scale.of_blocks(NUM_BLOCKS)):
            half_width = scale.passage_margin(blocks)
            found += [float(abs(values[other].mean() - blocks.mean()) <= half_width), half_width]
        yield tuple(found)


def ratio_and_neighbours(values: NDArray[np.float64]) -> tuple[float, float]:
    within = np.sqrt(values.var(axis=1, ddof=1).mean() / values.shape[1])
    centred = values - values.mean(axis=1, keepdims=True)
    neighbours = (centred[:, 1:] * centred[:, :-1]).mean() / np.square(centred).mean()
    return float(values.mean(axis=1).std(ddof=1) / within), float(neighbours)


def rows_of(text: str, num_folds: int, samples: list[Parts]) -> Iterator[tuple[object, ...]]:
    models = list(samples[0])
    differences = [(models[-1], model) for model in models[:-1]]
    for names in [*((model,) for model in models), *differences]:
        found = np.array([trial for parts in samples for trial in trials(parts, *names)]).mean(axis=0)
        assumed = np.mean([ratio_and_neighbours(values_of(parts, *names)) for parts in samples], axis=0)
        of, num_pairs = "model" if len(names) == 1 else "difference", len(samples) * (num_folds + 2) * (num_folds + 1)
        yield text, num_folds, of, " - ".join(names), num_pairs, *(f"{value:.3g}" for value in [*found, *assumed])


def main() -> None:
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for num_folds in NUM_FOLDS:
            samples = {text: [cross_validated(name, num_folds + 2)] for text, name in TEXTS.items()}
            samples["simulated"] = [simulated(num_folds + 2, seed) for seed in range(SIMULATED // (num_folds + 2) + 1)]
            for text, of_text in samples.items():
                for row in rows_of(text, num_folds, of_text):
                    writer.writerow(row)
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
