"""Small trainings on a made text, for tests of the trainer and of the stage."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from ruamel.yaml import YAML

from seqlm.configure.runs import resolve_runs
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.streams import SPLITS, build_corpus
from workspace import ROOT

TEXT = np.random.default_rng(0).integers(1, 6, 200)
SMALL = {"num_hiddens": 8, "num_epochs": 3, "batch_size": 4, "num_steps": 5, "max_tokens": None, "eval_every": 1}


def config(**changes: object) -> RunConfig:
    """Return the settings of a small run, named x, with changes."""
    values = YAML(typ="safe", pure=True).load(ROOT / "params.yaml") | {"num_threads": 1}
    return resolve_runs(values | {"runs": {"x": SMALL | changes}}, source="params.yaml")["x"]


def trainer(run: RunConfig, text: np.ndarray = TEXT, val: np.ndarray = TEXT[:40]) -> Trainer:
    """Return a training of a run that has not begun."""
    return Trainer(run, 6, text, val, torch.device("cpu"))


def trained(run: RunConfig, text: np.ndarray = TEXT) -> Trainer:
    """Return a training of a run that has ended."""
    made = trainer(run, text)
    made.run(lambda _: None)
    return made


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Whether two networks have the same weights, bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def prepare_stage(folder: Path, text: str, **changes: Any) -> list[str]:
    """Write a corpus of three equal splits and a run's settings for the train stage; return the stage's options."""
    splits = {}
    for split in SPLITS:
        splits[split] = folder / f"{split}.txt"
        splits[split].write_text(text, encoding="utf-8")
    for kind in ("char", "word"):
        build_corpus(splits, folder / "data" / "corpus" / kind, kind, "", 0, [])
    (folder / "data" / "configs").mkdir(parents=True)
    (folder / "data" / "configs" / "x.json").write_text(config(**changes).model_dump_json())
    return ["--run", "x"]
