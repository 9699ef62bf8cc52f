"""Small trainings on a random text, for tests of the trainer and of the stage."""

import csv
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import small_runs
from encoded_corpora import encode
from seqlm.core.layout import Layout
from seqlm.pipeline.train.configs import ConfigFile
from seqlm.train.ranks import ONE_PROCESS
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer

TEXT = np.random.default_rng(0).integers(1, 6, 200)


def config(**changes: Any) -> RunConfig:
    """Return the settings of a small run named x: three epochs of minibatches of 4 x 5, with changes."""
    return small_runs.config(**({"num_epochs": 3} | changes))


def trainer(run: RunConfig, text: np.ndarray = TEXT, val: np.ndarray = TEXT[:40]) -> Trainer:
    return Trainer(run, 6, text, val, "cpu", prefix=[1, 2])


def trained(run: RunConfig, text: np.ndarray = TEXT) -> Trainer:
    made = trainer(run, text)
    made.train(lambda _: None)
    return made


def in_state(arrays: dict[str, np.ndarray], values: dict[str, Any]) -> Any:
    """Return what a checkpoint sees of a training in a state; its ``restore`` records what it is given back."""
    return mock.Mock(ranks=ONE_PROCESS, state=lambda: (arrays, values))


def equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether two networks have the same weights, bit for bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def prepare_stage(folder: Path, *texts: str, **changes: Any) -> Layout:
    """Write three splits, or one text as all three, as a corpus, and a run's settings, for the train stage."""
    layout, run = Layout(folder), config(**changes)
    encode(layout, [run.token], "", *texts)
    ConfigFile(config=run).write(layout.config("x"))
    return layout


def history_rows(layout: Layout) -> list[dict[str, str]]:
    with layout.reports("train", "x", "history.csv").open() as file:
        return list(csv.DictReader(file))
