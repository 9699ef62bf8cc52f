"""A training that stops after any minibatch goes on to the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from seqlm.core.files import sha256_of_file
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.trainer import Trainer
from small_training import config, equal, prepare_stage, trained, trainer
from smoke import ROOT
from stages_by_hand import RunStage

ADAM = {"optimizer": "adamw", "lr": 0.01, "schedule": "cosine", "warmup_share": 0.3, "weight_decay": 0.1}
LSTM = {"model": "lstm", "num_layers": 2, "embedding": "learned", "dropout": 0.3, "keep": "best", **ADAM}
COMPILED = {"num_hiddens": 128, "num_epochs": 2}


class Stop(Exception):
    """The process ends here."""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sampling": "random"},
        {"truncation": "randomized"},
        {"sampling": "random", "carry_state": True, "patience": 2},
        {"model": "rnn", **ADAM},
        {"model": "gru", "carry_state": False},
        LSTM,
        LSTM | {"max_trained_tokens": 400, "num_epochs": 7, "sampling": "random"},
        {"max_trained_tokens": 130, "num_epochs": 2, **ADAM},
        LSTM | COMPILED,
        {"model": "gru"} | COMPILED,
    ],
    ids=[
        "sequential",
        "random",
        "randomized",
        "random carried",
        "rnn",
        "gru",
        "lstm",
        "bounded lstm",
        "bounded",
        "compiled lstm",
        "compiled gru",
    ],
)
def test_a_stop_after_every_minibatch_changes_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    run = config(**changes)
    whole = trained(run)
    checkpoint = Checkpoint(tmp_path, "x", "key")

    def stop(made: Trainer) -> None:
        checkpoint.save(*made.state())
        raise Stop

    for _ in range(2 * whole.progress.minibatches):
        now = trainer(run)
        if saved := checkpoint.load():
            now.restore(*saved)
        if now.is_done:
            break
        with pytest.raises(Stop):
            now.run(stop)
    assert now.is_done
    assert now.progress == whole.progress
    assert equal(now.network.weights(), whole.network.weights())
    assert equal(now.chosen_weights()[1], whole.chosen_weights()[1])


TRAIN = [sys.executable, str(ROOT / "stages/train.py"), "--run", "x"]


def checkpoints(folder: Path) -> list[tuple[str, int]]:
    return [(path.name, path.stat().st_mtime_ns) for path in (folder / "checkpoints").glob("*.checkpoint")]


@pytest.mark.slow
def test_a_kill_inside_an_epoch_loses_seconds_and_changes_nothing(run_stage: RunStage, tmp_path: Path) -> None:
    text = (ROOT / "data/sample.txt").read_text(encoding="utf-8")
    prepare_stage(
        tmp_path, text, num_epochs=2, num_hiddens=64, model="lstm", dropout=0.2, num_steps=10, checkpoint_s=0.2, **ADAM
    )
    assert run_stage("train", "--run", "x").returncode == 0
    weights, history = tmp_path / "data/models/runs/x/weights.safetensors", tmp_path / "reports/train/x/history.csv"
    undisturbed, rows = sha256_of_file(weights), history.read_bytes()
    for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        earlier = checkpoints(tmp_path)
        process = subprocess.Popen(TRAIN, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while checkpoints(tmp_path) in ([], earlier):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, stop)
        process.wait(timeout=60)
    result = run_stage("train", "--run", "x")
    # Two epochs: who went on after a fraction was interrupted inside one.
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("going on after epoch")]
    assert 0 < float(line.split()[-1]) % 1 < 1
    assert sha256_of_file(weights) == undisturbed
    assert history.read_bytes() == rows
    assert checkpoints(tmp_path) == []


@pytest.mark.slow
def test_two_processes_go_on_together_inside_an_epoch(tmp_path: Path) -> None:
    text = (ROOT / "data/sample.txt").read_text(encoding="utf-8")[:4000]
    # Processes agree on a checkpoint after every 64th minibatch of 4 x 5 tokens; an epoch has three such places.
    prepare_stage(tmp_path, text, num_epochs=2, model="gru", checkpoint_s=0)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    torchrun += ["--", *TRAIN[1:]]
    weights = tmp_path / "data/models/runs/x/weights.safetensors"
    subprocess.run(torchrun, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    undisturbed = sha256_of_file(weights)
    process = subprocess.Popen(torchrun, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not checkpoints(tmp_path):
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()  # torchrun ends its processes
    process.wait(timeout=60)
    again = subprocess.run(torchrun, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)
    assert "going on after epoch" in again.stdout
    assert sha256_of_file(weights) == undisturbed
