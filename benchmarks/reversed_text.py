"""Is a text easier to predict forwards than backwards (exercise 8.1-3)?

    python benchmarks/reversed_text.py

Trains Kneser-Ney models on train of The Time Machine and on the same tokens in reverse order, and writes their bits per
token on val, read in the same direction, to benchmarks/results/reversed_text.csv. Both directions predict the same
tokens except one. ``SEQLM_DATA_DIR`` names a folder with timemachine.txt.
"""

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from origin import ROOT
from trainings import prepare

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

RESULTS = ROOT / "benchmarks" / "results" / "reversed_text.csv"
ORDERS = {"char": 7, "word": 3}


def rows(folder: Path) -> Iterator[tuple[object, ...]]:
    for kind, max_order in ORDERS.items():
        vocab_size = len(Vocab.load(folder / kind / "vocab.json", kind))
        train, val = (np.asarray(load_split(folder / kind, split), np.int64) for split in ("train", "val"))
        counts = [count_ngrams(np.ascontiguousarray(train[::step]), vocab_size, max_order) for step in (1, -1)]
        for order in range(1, max_order + 1):
            bits = [
                float(-np.log2(KneserNey(counted, order).probs(np.ascontiguousarray(val[::step]))).mean())
                for counted, step in zip(counts, (1, -1), strict=True)
            ]
            yield kind, order, *(f"{value:.4f}" for value in bits)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, RESULTS.open("w", newline="") as file:
        prepare(Path(name))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["token", "order", "forwards", "backwards"])
        writer.writerows(rows(Path(name)))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
