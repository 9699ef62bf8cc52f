"""The noisy sine of section 8.1 with many seeds: the program as it is, wrong versions of it, and other models.

    python benchmarks/sine_variants.py [--seeds N]

Writes two tables to benchmarks/results:

- sine_variants.csv: what the program reports, over seeds, when it is right and when it is wrong in one way. The bounds
  in src/seqlm/pipeline/report/book.yaml come from the rows "correct" (benchmarks/bounds.py), and
  tests/pipeline/report/test_book_comparison.py shows that every wrong version is noticed.
- sine_models.csv: the error one step ahead of other features and other networks (exercises 8.1-1 C and D).
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import nn

from seqlm.core.elementary import Floats
from seqlm.core.settings import load
from seqlm.pipeline.sine import study
from seqlm.pipeline.sine.settings import SineParams
from seqlm.pipeline.sine.study import SineMLP, SineRNN, noisy_sine, predictor, study_sine, train_model

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# As they are before one of them is replaced.
WINDOWS, RMSE_BY_K, INIT_MODEL = study.windows, study.rmse_by_k, study.init_model

# Wrong versions: each replaces one function or one setting of the program.


def shifted(by: int) -> Callable[..., tuple[Floats, Floats]]:
    """Return the function ``windows`` with labels that are ``by`` steps too late."""

    def windows(series: Floats, tau: int) -> tuple[Floats, Floats]:
        features, labels = WINDOWS(series, tau)
        return features[:-by], labels[by:]

    return windows


def seen(series: Floats, tau: int) -> tuple[Floats, Floats]:
    """Return windows whose label is their own last value."""
    features, _ = WINDOWS(series, tau)
    return features, features[:, -1:]


def without_relu(kind: Any, tau: int, rng: np.random.Generator) -> nn.Module:
    """Return the network without its activation: it is linear."""
    network = INIT_MODEL(kind, tau, rng)
    return (
        nn.Sequential(*(layer for layer in network.children() if not isinstance(layer, nn.ReLU)))
        if kind == "MLP"
        else network
    )


def halved(*arguments: Any) -> list[float]:
    return [loss / 2 for loss in train_model(*arguments)]


def all_pairs(series: Floats, tau: int, _: SineParams) -> tuple[Floats, Floats]:
    return WINDOWS(series, tau)


def error_on_every_row(predictions: Floats, series: Floats, tau: int, _: int) -> Floats:
    return RMSE_BY_K(predictions, series, tau, 0)


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name: settings, functions of seqlm.pipeline.sine.study
    "labels shifted by 1": ({}, {"windows": shifted(1)}),
    "labels shifted by 4": ({}, {"windows": shifted(4)}),
    "labels shifted by 8": ({}, {"windows": shifted(8)}),
    "labels already seen": ({}, {"windows": seen}),
    "tau 2": ({"tau": 2}, {}),
    "tau 8": ({"tau": 8}, {}),
    "no ReLU": ({}, {"init_model": without_relu}),
    "trained on all pairs": ({}, {"_training_pairs": all_pairs}),
    "tested on training rows too": ({}, {"rmse_by_k": error_on_every_row}),
    "half the loss": ({}, {"train_model": halved}),
}


def run(seed: int, version: str = "correct") -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Run the program with the settings of params.yaml and a seed, as it is or wrong in one way; return its reports."""
    settings, functions = WRONG.get(version, ({}, {}))
    params = load(ROOT / "params.yaml", "sine", SineParams).model_copy(update={"taus": [], **settings})
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(mock.patch.object(study, name, function))
        tables, summary = study_sine(params, seed)
    return tables, summary


def measures(summary: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a study that differ from seed to seed."""
    values = {f"loss.{epoch}": loss for epoch, loss in summary["loss"].items()}
    values |= {f"rmse.{k}": rmse for k, rmse in summary["rmse"].items()}
    return values | {
        "rmse.k_1/repeat": summary["rmse"]["k_1"] / summary["repeat_rmse"]["k_1"],
        "curvature": summary["curvature"],
    }


def variants(num_seeds: int) -> Iterator[tuple[Any, ...]]:
    for version in ("correct", *WRONG):
        seeds = num_seeds if version == "correct" else max(num_seeds // 10, 1)
        found = pd.DataFrame([measures(run(seed, version)[1]) for seed in range(seeds)])
        for measure, values in found.items():
            yield (version, measure, seeds, values.mean(), values.std(), values.min(), values.max())
        print(version, flush=True)


# Other models: every one predicts the same values, from which the network has seen at most the 32 before.

LONGEST = 32
NUM_TRAIN = 600


def lagged(lags: list[int]) -> Callable[[Floats], Floats]:
    """Return a function that gives, for each value of the series from LONGEST on, those so many steps before."""
    return lambda series: np.stack([series[LONGEST - lag : len(series) - lag] for lag in lags], 1)


def averaged(spans: list[tuple[int, int]]) -> Callable[[Floats], Floats]:
    """The same for means: a span (a, b) is the mean of the values a to b steps before."""
    return lambda series: np.stack([lagged(list(range(a, b + 1)))(series).mean(1) for a, b in spans], 1)


Build = Callable[[np.random.Generator], nn.Module]


def mlp(*sizes: int) -> Build:
    """Return a function that builds a network of four features with so many units in its hidden layers."""
    return partial(SineMLP, (4, *sizes, 1))


PAST_4 = lagged([1, 2, 3, 4])
MODELS: dict[str, tuple[str, Callable[[Floats], Floats], Build, int]] = {
    # name: exercise, features, network, epochs
    "the last 4 values": ("C", PAST_4, mlp(10), 5),
    "4 values, every second": ("C", lagged([1, 3, 5, 7]), mlp(10), 5),
    "4 values, every fourth": ("C", lagged([1, 5, 9, 13]), mlp(10), 5),
    "4 values, every eighth": ("C", lagged([1, 9, 17, 25]), mlp(10), 5),
    "4 means over 2 values each": ("C", averaged([(1, 2), (3, 4), (5, 6), (7, 8)]), mlp(10), 5),
    "4 means over 4 values each": ("C", averaged([(1, 4), (5, 8), (9, 12), (13, 16)]), mlp(10), 5),
    "4 means over 8 values each": ("C", averaged([(1, 8), (9, 16), (17, 24), (25, 32)]), mlp(10), 5),
    "no hidden layer": ("D", PAST_4, mlp(), 5),
    "2 hidden units": ("D", PAST_4, mlp(2), 5),
    "10 hidden units": ("D", PAST_4, mlp(10), 5),
    "50 hidden units": ("D", PAST_4, mlp(50), 5),
    "two layers of 10": ("D", PAST_4, mlp(10, 10), 5),
    "RNN of 10 units": ("D", PAST_4, partial(SineRNN, 10), 5),
    "10 hidden units, 50 epochs": ("D", PAST_4, mlp(10), 50),
    "RNN of 10 units, 50 epochs": ("D", PAST_4, partial(SineRNN, 10), 50),
}


def error(seed: int, features_of: Callable[[Floats], Floats], build: Build, epochs: int) -> float:
    """Return the root mean squared error one step ahead after the training pairs."""
    series = noisy_sine(1000, 0.01, 0.2, seed)
    # An RNN reads the oldest value first.
    features, labels = features_of(series)[:, ::-1].copy(), series[LONGEST:, None]
    rng = np.random.default_rng([seed, 1])
    network = build(rng)
    train_model(network, features[:NUM_TRAIN], labels[:NUM_TRAIN], epochs, rng)
    return float(np.sqrt(np.mean((predictor(network)(features[NUM_TRAIN:]) - labels[NUM_TRAIN:]) ** 2)))


def models(num_seeds: int) -> Iterator[tuple[Any, ...]]:
    for name, (exercise, features_of, build, epochs) in MODELS.items():
        errors = np.array([error(seed, features_of, build, epochs) for seed in range(num_seeds)])
        yield exercise, name, num_seeds, errors.mean(), errors.std(ddof=1) / len(errors) ** 0.5
        print(name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400)
    num_seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    tables = {
        "sine_models": (models(max(num_seeds // 4, 2)), ["exercise", "model", "seeds", "rmse", "standard_error"]),
        "sine_variants": (
            variants(num_seeds),
            ["version", "measure", "seeds", "mean", "deviation", "least", "greatest"],
        ),
    }
    for name, (rows, columns) in tables.items():
        frame = pd.DataFrame(list(rows), columns=columns)
        frame.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()
