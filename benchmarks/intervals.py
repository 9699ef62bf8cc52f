"""How often verdicts have the right sign on real text, and how often intervals contain what they are about.

    python benchmarks/intervals.py

Each text is cut into pieces of about 310,000 characters (The Time Machine is one piece of 170,000), and each piece into
18 parts. The first eight are train. Each of the other ten in turn is test, as long as a fold of train. The truth about
two models is their mean difference over these ten. Models are Kneser-Ney models over characters: *different* ones have
orders 1 to 6 or were trained on 10,000 characters or half of train; *alike* ones have order 5, and each lacks another
eighth of train. In each test, every model is compared with the one that is best over all ten parts.

``SEQLM_DATA_DIR`` names a folder with timemachine.txt and tinyshakespeare.txt. The command ``bible`` is in Debian's
package bible-kjv.

Writes benchmarks/results/intervals.txt: the number of tests; of comparisons, and how many
of their verdicts are significant; the tests in which a significant verdict has the wrong sign; those in which at least
one interval of a difference misses the truth; and how often the interval of a model contains its score on another of
the ten parts.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.models.scored_text import NUM_BLOCKS
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.evaluate.uncertainty import ErrorModel, calibrated
from seqlm.pipeline.score.ngrams import ORDERS as REFERENCES
from seqlm.pipeline.score.ngrams import Folds

RESULTS = Path(__file__).resolve().parent / "results" / "intervals.txt"
NUM_TRAIN, NUM_TESTS = 8, 10
PIECE_CHARS = 310_000
MAX_ORDER = 6
Ids = NDArray[np.integer]
Bits = NDArray[np.float64]
"""Bits per character of one model on each block of each test; shape ``(NUM_TESTS, NUM_BLOCKS)``."""


def clean_line(line: str) -> str:
    return re.sub("[^A-Za-z]+", " ", line).strip().lower()


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name of each text and its cleaned characters, with the lines joined."""
    for name, file in (("The Time Machine", "timemachine.txt"), ("Tiny Shakespeare", "tinyshakespeare.txt")):
        lines = (Path(os.environ["SEQLM_DATA_DIR"]) / file).read_text(encoding="utf-8").splitlines()
        yield name, "".join(map(clean_line, lines))
    verses = subprocess.run(["bible", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    yield ("King James Bible", " ".join(clean_line(verse.partition(" ")[2]) for verse in verses.splitlines()))


def pieces(text: str) -> tuple[list[Ids], int]:
    """Return a text as pieces of ids, and the size of its vocabulary."""
    characters, ids = np.unique(np.frombuffer(text.encode(), np.uint8), return_inverse=True)
    return np.array_split(ids + 1, max(len(ids) // PIECE_CHARS, 1)), len(characters) + 1


def bits(train: Ids, order: int, tests: list[Ids], vocab_size: int) -> Bits:
    model = KneserNey(count_ngrams(train, vocab_size, order), order)
    found = [np.array_split(token_nll(model, test) / np.log(2), NUM_BLOCKS) for test in tests]
    return np.array([[block.mean() for block in blocks] for blocks in found])


def counts_of(models: dict[str, Bits], scales: list[ErrorModel]) -> Iterator[tuple[int, ...]]:
    """Yield for each test: comparisons, significant ones, is one's sign wrong, does an interval miss."""
    best = min(models, key=lambda name: models[name].mean())
    differences = [values - models[best] for name, values in models.items() if name != best]
    truth = np.array([each.mean() for each in differences])
    for test, scale in enumerate(scales):
        found = [scale.compare(each[test], len(differences)) for each in differences]
        difference = np.array([each.best_difference for each in found])
        significant = np.array([each.best_verdict != "not significant" for each in found])
        misses = np.abs(difference - truth) > [each.best_margin for each in found]
        yield (len(differences), significant.sum(), (significant & (difference * truth < 0)).any(), misses.any())


def contained(models: dict[str, Bits], scales: list[ErrorModel]) -> float:
    """Return the share of pairs of tests in which the interval of one contains the score on the other."""
    found = []
    for values in models.values():
        means = values.mean(axis=1)
        for test, scale in enumerate(scales):
            is_inside = np.abs(means - means[test]) <= np.sqrt(2) * scale.margin(values[test])
            found.append((is_inside.sum() - 1) / (NUM_TESTS - 1))
    return float(np.mean(found))


def rows_of(text: str) -> Iterator[tuple[str, list[float], float]]:
    """Yield for each kind of model the sums of what :func:`counts_of` yields, and what :func:`contained` returns."""
    sums: dict[str, list[tuple[int, ...]]] = {}
    inside: dict[str, list[float]] = {}
    found, vocab_size = pieces(text)
    for piece in found:
        parts = np.array_split(piece, NUM_TRAIN + NUM_TESTS)
        folds, tests, train = (parts[:NUM_TRAIN], parts[NUM_TRAIN:], np.concatenate(parts[:NUM_TRAIN]))
        rests = [np.concatenate(folds[:fold] + folds[fold + 1 :]) for fold in range(NUM_TRAIN)]
        sizes = [(size, order) for size in (10_000, len(train) // 2) for order in (3, 5)]
        models = {"different": {f"{n}": bits(train, n, tests, vocab_size) for n in range(1, MAX_ORDER + 1)}}
        models["different"] |= {f"{n}@{size}": bits(train[:size], n, tests, vocab_size) for size, n in sizes}
        models["alike"] = {f"{fold}": bits(rest, 5, tests, vocab_size) for fold, rest in enumerate(rests)}
        of_folds = [
            [float(bits(rest, n, [fold], vocab_size).mean()) for fold, rest in zip(folds, rests, strict=True)]
            for n in REFERENCES
        ]
        scales = [
            calibrated(Folds(of_folds, [models["different"][f"{n}"][test].tolist() for n in REFERENCES]), NUM_BLOCKS)
            for test in range(NUM_TESTS)
        ]
        for kind, of_kind in models.items():
            sums.setdefault(kind, []).extend(counts_of(of_kind, [of_difference for _, of_difference in scales]))
            inside.setdefault(kind, []).append(contained(of_kind, [of_model for of_model, _ in scales]))
    for kind, each in sums.items():
        yield kind, [len(each), *np.sum(each, axis=0)], float(np.mean(inside[kind]))


def main() -> None:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    lines = [
        f"python benchmarks/intervals.py, commit {commit.stdout.strip()}, {os.cpu_count()} cores, {platform.machine()}",
        "text              models     tests  comparisons  significant  wrong sign  a miss  contained",
    ]
    for name, text in texts():
        for kind, (tests, comparisons, significant, wrong, miss), inside in rows_of(text):
            lines.append(f"{name:18}{kind:10}{tests:6}{comparisons:13}{significant:13}{wrong:12}{miss:8}{inside:11.3f}")
    RESULTS.write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
