"""The train stage by hand: what it leaves, kills, and two processes."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ruamel.yaml import YAML

from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.train.settings import RunConfig
from seqlm.vocab.corpus_building import SPLITS, build_corpus
from small_runs import config, write_texts
from smoke import ROOT
from stages_by_hand import RunStage


def write_corpus(layout: Layout, text: str, separator: str) -> None:
    write_texts(layout, text)
    build_corpus({split: layout.split(split) for split in SPLITS}, layout.corpus("char"), "char", separator, 0, [])


def write_config(layout: Layout, run: RunConfig) -> None:
    layout.configs.mkdir(parents=True, exist_ok=True)
    layout.config(run.run).write_text(run.model_dump_json())


def prepared(folder: Path, **changes: object) -> Layout:
    """Write a corpus and the settings of a run ``x`` into an empty workspace."""
    layout = Layout(folder)
    write_corpus(layout, "the sea came in and the sea went out again\n" * 60, "")
    write_config(layout, config(**({"sample_every": 2, "checkpoint_s": 0} | changes)))
    return layout


def test_the_stage_leaves_weights_history_and_no_checkpoint(run_stage: RunStage, tmp_path: Path) -> None:
    layout = prepared(tmp_path)
    result = run_stage("train", "--run", "x")
    assert result.returncode == 0, result.stderr
    history = layout.reports("train", "x", "history.csv").read_text().splitlines()
    assert history[0].startswith("run,epoch,train_perplexity,val_perplexity,grad_norm")
    assert len(history) == 1 + 4
    assert json.loads(layout.reports("train", "x", "summary.json").read_text())["epochs"] == 4
    headline = json.loads(layout.reports("train", "x", "metrics.json").read_text())
    assert headline == {"epoch": 4, "train_perplexity": pytest.approx(float(history[-1].split(",")[2]))}
    assert sorted(path.name for path in layout.run("x").iterdir()) == ["model.json", "weights.safetensors"]
    assert [path.name for path in layout.checkpoints.iterdir()] == ["x.lock"]


@pytest.mark.parametrize(
    ("changes", "code", "complaint"),
    [
        ({"device": "cuda"}, 5, "device: cuda: this machine has none"),
        ({"max_tokens": 1}, 3, "1 tokens to train on: bring a longer text"),
        (
            {"activation": "relu", "lr": 1e6, "num_steps": 40, "grad_clip": None, "num_epochs": 50},
            6,
            "the loss is not finite",
        ),
    ],
)
def test_what_cannot_be_trained_ends_with_one_line(
    changes: dict[str, Any], code: int, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    if "device" in changes and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    device = changes.pop("device", "cpu")
    layout = prepared(tmp_path, **changes)
    path = layout.config("x")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"device": device}))
    result = run_stage("train", "--run", "x")
    assert result.returncode == code, result.stderr
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not layout.runs.exists()
    assert not layout.reports("train").exists()


def checkpoint_times(layout: Layout) -> list[int]:
    return [path.stat().st_mtime_ns for path in layout.checkpoints.glob("*.checkpoint")]


def heed_interrupts() -> None:
    """What a shell starts in the background ignores interrupts, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_killed_trainings_go_on_to_the_same_weights(run_stage: RunStage, tmp_path: Path) -> None:
    layout = prepared(tmp_path, num_epochs=60, num_hiddens=32, eval_every=50, sample_every=0, checkpoint_s=0.05)
    weights, history = layout.run("x") / "weights.safetensors", layout.reports("train", "x", "history.csv")
    assert run_stage("train", "--run", "x").returncode == 0
    undisturbed, rows = sha256_of_file(weights), history.read_text()
    weights.unlink()
    command = [sys.executable, str(ROOT / "stages/train.py"), "--run", "x"]
    rng, kills = np.random.default_rng(0), 0
    for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        # A signal while Python still imports may be lost: wait for a checkpoint that this process wrote.
        earlier = checkpoint_times(layout)
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=heed_interrupts,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and checkpoint_times(layout) in ([], earlier):
            time.sleep(0.02)
        time.sleep(float(rng.uniform(0, 0.2)))
        kills += process.poll() is None
        # An interrupt that meets a destructor is ignored: a person presses the keys again.
        while process.poll() is None:
            process.send_signal(stop)
            time.sleep(0.1)
    assert kills == 3
    result = run_stage("train", "--run", "x")
    assert "going on after epoch" in result.stdout
    assert sha256_of_file(weights) == undisturbed
    assert history.read_text() == rows


def stage_history(layout: Layout, launcher: str) -> list[dict[str, str]]:
    """Run the train stage by a launcher, as the pipeline does, and return its history."""
    command = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["train"]["do"]["cmd"]
    words = shlex.split(command.replace("${launcher}", launcher).replace("${key}", "x"))
    script = words.index("stages/train.py")
    words[script] = str(ROOT / words[script])
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=layout.root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with layout.reports("train", "x", "history.csv").open() as file:
        return list(csv.DictReader(file))


LSTM = {"model": "lstm", "num_layers": 2, "embedding": "learned", "dropout": 0.3, "optimizer": "adamw", "lr": 0.01}
# Steps of adamw carry a difference in the last digit on much faster, in the framework's layers too.
COMPILED = LSTM | {"num_hiddens": 128, "optimizer": "sgd", "lr": 0.5}


@pytest.mark.parametrize(
    "changes",
    [{}, {"sampling": "random", "truncation": "randomized"}, LSTM, COMPILED],
    ids=["sequential", "randomized", "lstm with dropout", "compiled lstm"],
)
def test_two_processes_train_as_one(changes: dict[str, Any], tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_corpus(layout, (ROOT / "data/sample.txt").read_text(encoding="utf-8")[:3000] + "\n", "\n")
    write_config(layout, config(**changes))
    one = stage_history(layout, "python")
    two = stage_history(layout, "torchrun --standalone --nproc-per-node 2")
    assert len(one) == len(two) == 4
    for ours, theirs in zip(one, two, strict=True):
        for column in ("train_perplexity", "val_perplexity", "grad_norm"):
            assert float(ours[column]) == pytest.approx(float(theirs[column]), rel=1e-4), column
