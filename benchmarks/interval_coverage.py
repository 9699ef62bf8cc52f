"""How often the intervals of `evaluate` contain what they claim to, by cross-validation and on simulated text.

    python benchmarks/interval_coverage.py

Each text is cut into parts. Each part in turn is test, and the other parts calibrate the interval, as the folds of
train do in the pipeline. An interval is right if it contains the mean of the same kind of model over the other parts.
Models are Kneser-Ney models over characters, each trained on all parts but the one that it scores. The simulated text
has no models: its bits per character drift over 1,500 characters, and those of a second model follow them in part.
``SEQLM_DATA_DIR`` names a folder with timemachine.txt and tinyshakespeare.txt.

Writes benchmarks/results/interval_coverage.csv: for each text, number of other parts, and model or difference between
two models, the share of right intervals and their mean half-width, calibrated as in the pipeline, and from the blocks
of test alone. Expected: 0.95.
"""

import csv
import os
import re
from collections.abc import Iterator
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
    "other_parts",
    "of",
    "model",
    "trials",
    "calibrated",
    "half_width",
    "blocks_alone",
    "blocks_half_width",
)
TEXTS = {"The Time Machine": "timemachine.txt", "Tiny Shakespeare": "tinyshakespeare.txt"}
NUM_OTHERS = (5, 10, 20)
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


def folds_without(parts: Parts, index: int) -> Folds:
    """Return what calibrates the intervals if one part is test."""
    references = [parts[f"order {order}"] for order in REFERENCES]
    bits = [[float(part.mean()) for place, part in enumerate(found) if place != index] for found in references]
    return Folds(bits, [found[index].tolist() for found in references])


def trials(parts: Parts, first: str, second: str | None = None) -> Iterator[tuple[bool, float, bool, float]]:
    """Yield for each part as test whether the intervals contain the mean of the others, and their half-widths."""
    for index, blocks in enumerate(parts[first]):
        scales = IntervalScales.of_folds(folds_without(parts, index))
        values, scale = parts[first], scales.of_model
        if second is not None:
            values = [one - other for one, other in zip(values, parts[second], strict=True)]
            scale = scales.of_difference
        others = float(np.mean([part.mean() for place, part in enumerate(values) if place != index]))
        found = []
        for each in (scale, Scale.of_blocks(len(blocks))):
            low, high = each.interval(values[index])
            found += [low <= others <= high, (high - low) / 2]
        yield tuple(found)


def rows_of(text: str, num_others: int, samples: list[Parts]) -> Iterator[tuple[object, ...]]:
    models = list(samples[0])
    pairs = [(models[-1], model) for model in models[:-1]]
    for names in [*((model,) for model in models), *pairs]:
        values = np.array([trial for parts in samples for trial in trials(parts, *names)], float)
        of = "model" if len(names) == 1 else "difference"
        yield text, num_others, of, " - ".join(names), len(values), *(f"{value:.3g}" for value in values.mean(axis=0))


def main() -> None:
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for num_others in NUM_OTHERS:
            samples = {text: [cross_validated(name, num_others + 1)] for text, name in TEXTS.items()}
            samples["simulated"] = [
                simulated(num_others + 1, seed) for seed in range(SIMULATED // (num_others + 1) + 1)
            ]
            for text, of_text in samples.items():
                for row in rows_of(text, num_others, of_text):
                    writer.writerow(row)
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
