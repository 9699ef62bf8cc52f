"""The ranges in src/seqlm/pipeline/report/book.yaml, from what many seeds of the right programs gave.

    python benchmarks/bounds.py

Reads what sine_variants.py and trainings.py left in benchmarks/results; prints, by the names of book.yaml,
the mean and the range. A range reaches from the least to the greatest value of n seeds and, because another seed may be
more extreme, by the share 1 / sqrt(n) of its width further at each end, on a logarithmic scale. For a perplexity, that
is the scale of the nats per character. Where the book prints a perplexity, with one decimal, the range has no values
that would be printed as more than 0.1 above or below the book's.
"""

import csv
import math
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
PRINTED = {"scratch-sequential": 1.0, "scratch-random": 1.5, "concise-sequential": 1.3}
"""The book's perplexities."""
Range = tuple[float, float, float]
"""Mean, lower end, upper end."""


def widened(low: float, high: float, num_seeds: int) -> tuple[float, float]:
    """Return a range that is wider by 1 / sqrt(num_seeds) at each end, on a logarithmic scale."""
    factor = (high / low) ** (num_seeds**-0.5)
    return low / factor, high * factor


def rounded(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")


def of_sine() -> dict[str, Range]:
    measures = {*(f"loss.epoch_{epoch}" for epoch in range(1, 6)), *(f"rmse.k_{k}" for k in (1, 4, 16))}
    measures |= {"rmse.k_1/repeat", "curvature"}
    found = {}
    with (RESULTS / "sine_variants.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["version"] == "correct" and row["measure"] in measures:
                low, high = widened(float(row["least"]), float(row["greatest"]), int(row["seeds"]))
                found[f"sine/summary.json {row['measure']}"] = (
                    rounded(float(row["mean"])),
                    rounded(low),
                    rounded(high),
                )
    return found


def of_trainings() -> dict[str, Range]:
    found = {}
    for name, by_seed in nats_per_character().items():
        nats = list(by_seed.values())
        low, high = (rounded(math.exp(value)) for value in widened(min(nats), max(nats), len(nats)))
        if book := PRINTED.get(name):
            low, high = max(low, rounded(book - 0.14)), min(high, rounded(book + 0.14))
        found[f"train/{name}/summary.json last_epoch_train_perplexity"] = (
            rounded(math.exp(sum(nats) / len(nats))),
            low,
            high,
        )
    return found


def nats_per_character() -> dict[str, dict[int, float]]:
    """Return the training loss after the last epoch by run and seed."""
    found: dict[str, dict[int, float]] = {}
    with (RESULTS / "trainings.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["group"] == "book":
                found.setdefault(row["name"], {})[int(row["seed"])] = math.log(float(row["train_perplexity"]))
    return found


def main() -> None:
    for name, (mean, low, high) in (of_sine() | of_trainings()).items():
        print(f"{name:32} mean {mean:g}, allowed: [{low:g}, {high:g}]")


if __name__ == "__main__":
    main()
