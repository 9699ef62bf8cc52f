"""Checkpoints: a training that stops after any minibatch resumes to the same bytes, and only from its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from seqlm.core import sources
from seqlm.core.errors import MachineError
from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.networks.architectures import ARCHITECTURES
from seqlm.pipeline.train.interrupts import run_lock
from seqlm.train import callbacks
from seqlm.train.callbacks import Checkpoint, checkpoint_key, periodic_saver
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import SPLITS
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from small_training import config, equal, in_state, prepare_stage, trained, trainer
from smoke import ROOT
from stages_by_hand import RunStage, succeeded
from workspace import wait_until

ADAM = {"optimizer": "adamw", "lr": 0.01, "schedule": "cosine", "warmup_share": 0.3, "weight_decay": 0.1}
DROPOUT = {"embedding": "learned", "dropout": 0.3, "checkpoint": "best", **ADAM}
LSTM = {"model": "lstm", "num_layers": 2, **DROPOUT}
COMPILED = {"num_hiddens": 128, "num_epochs": 2}


class Stop(Exception):
    """The process ends here."""


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="sequential"),
        pytest.param({"sampling": "random"}, id="random"),
        pytest.param({"truncation": "randomized"}, id="randomized"),
        pytest.param({"sampling": "random", "patience": 2}, id="random with patience"),
        pytest.param({"model": "rnn", **ADAM}, id="rnn"),
        pytest.param({"model": "gru"}, id="gru"),
        pytest.param(LSTM, id="lstm"),
        pytest.param(LSTM | {"token_budget": 400, "num_epochs": 7, "sampling": "random"}, id="bounded lstm"),
        pytest.param({"token_budget": 130, "num_epochs": 2, **ADAM}, id="bounded"),
        pytest.param(LSTM | COMPILED, id="compiled lstm"),
        pytest.param({"model": "gru"} | COMPILED, id="compiled gru"),
        pytest.param({"model": "transformer", "num_heads": 2, **DROPOUT}, id="transformer"),
    ],
)
def test_a_stop_after_every_minibatch_changes_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    run = config(**changes)
    whole = trained(run)
    checkpoint = Checkpoint(tmp_path / "checkpoint", "key")

    def stop(made: Trainer) -> None:
        checkpoint.save(made)
        raise Stop

    for _ in range(2 * whole.progress.minibatches):
        resumed = trainer(run)
        checkpoint.restore(resumed)
        if resumed.is_done:
            break
        with pytest.raises(Stop):
            resumed.train(stop)
    assert resumed.is_done
    assert resumed.progress == whole.progress
    assert equal(resumed.network.weight_copies(), whole.network.weight_copies())
    assert equal(resumed.chosen_weights()[1], whole.chosen_weights()[1])


TRAIN = [str(ROOT / "stages/train.py"), "--model", "x"]


def checkpoints(layout: Layout) -> list[tuple[str, int]]:
    return [(path.name, path.stat().st_mtime_ns) for path in layout.checkpoints.rglob("checkpoint")]


def stop_after_a_checkpoint(
    layout: Layout, command: list[str], stop: Callable[[subprocess.Popen[str]], None]
) -> tuple[int, str]:
    """Run a training until it has written a checkpoint, then stop it; return its exit code and its errors."""
    earlier = checkpoints(layout)
    options = {"cwd": layout.root, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, *command], **options)
    # A signal while Python still imports may be lost: wait for a checkpoint of this process.
    wait_until(lambda: process.poll() is not None or checkpoints(layout) not in ([], earlier))
    stop(process)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_an_interrupted_training_resumes_to_the_same_weights(run_stage: RunStage, tmp_path: Path) -> None:
    text = (ROOT / "data/sample.txt").read_text(encoding="utf-8")
    slow = {"num_epochs": 2, "num_hiddens": 64, "model": "lstm", "dropout": 0.2, "num_steps": 10}
    layout = prepare_stage(tmp_path, text, **slow, **ADAM)
    succeeded(run_stage("train", *TRAIN[1:]))
    weights, history = (layout.run("x") / "weights.safetensors", layout.reports("train", "x", "history.csv"))
    undisturbed, rows = sha256_of_file(weights), history.read_bytes()
    weights.unlink()
    code, errors = stop_after_a_checkpoint(layout, TRAIN, lambda process: process.send_signal(signal.SIGINT))
    assert code == 130
    (epoch,) = re.findall(r"^interrupted at epoch (\d\.\d+); `dvc repro` continues from there\n$", errors)
    (resumed,) = re.findall(r"^resuming after epoch (\S+)$", run_stage("train", *TRAIN[1:]).stdout, re.MULTILINE)
    assert 0 < float(resumed) == float(epoch)
    assert sha256_of_file(weights) == undisturbed
    assert history.read_bytes() == rows
    assert checkpoints(layout) == []


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--", *TRAIN]


@pytest.mark.slow
def test_two_processes_of_which_one_is_killed_resume_together_within_an_epoch(tmp_path: Path) -> None:
    text = (ROOT / "data/sample.txt").read_text(encoding="utf-8")[:4000]
    # Processes agree on a checkpoint after every 64th minibatch of 4 x 5 tokens; an epoch has three such places.
    layout = prepare_stage(tmp_path, text, num_epochs=2, model="gru")
    weights, options = layout.run("x") / "weights.safetensors", {"cwd": tmp_path, "capture_output": True, "text": True}
    whole = subprocess.run(TORCHRUN, check=True, timeout=300, **options)
    assert "2 processes" in whole.stdout
    undisturbed = sha256_of_file(weights)

    def kill_second(torchrun: subprocess.Popen[str]) -> None:
        _, second = psutil.Process(torchrun.pid).children()
        second.kill()

    code, errors = stop_after_a_checkpoint(layout, TORCHRUN[1:], kill_second)
    assert code != 0
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert lines[0].endswith(": the same command continues from the last checkpoint")
    again = subprocess.run(TORCHRUN, check=True, timeout=300, **options)
    assert "resuming after epoch" in again.stdout
    assert sha256_of_file(weights) == undisturbed


def test_checkpoints_take_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoint, now, saved = Checkpoint(tmp_path / "checkpoint", "x"), [0.0], list[float]()
    monkeypatch.setattr("seqlm.train.callbacks.time.monotonic", lambda: now[0])

    def save(_: object) -> None:
        saved.append(now[0])
        now[0] += 0.01  # saving takes a hundredth of a second: the next one is due a second after it

    monkeypatch.setattr(checkpoint, "save", save)
    write = periodic_saver(checkpoint)

    def after_minibatch(made: Trainer) -> None:
        write(made)
        now[0] += 0.3

    trainer(config()).train(after_minibatch)
    assert saved[:3] == pytest.approx([0, 1.21, 2.42])


def test_a_damaged_checkpoint_is_not_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint", "key")
    made = in_state({"a": np.ones(2)}, {"b": [1, {"c": None}]})
    assert not checkpoint.restore(made)
    checkpoint.save(made)
    assert checkpoint.restore(made)
    ((arrays, values),) = made.restore.call_args.args
    assert (arrays["a"].tolist(), values) == ([1, 1], {"b": [1, {"c": None}]})
    assert not Checkpoint(checkpoint.path, "of other settings").restore(made)
    content = checkpoint.path.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    for half in (content[: len(content) // 2], b"", bytes(len(content)), flipped):
        checkpoint.path.write_bytes(half)
        assert not checkpoint.restore(made)


def vocab(*texts: str) -> Vocab:
    """Return a vocabulary whose splits have these hashes."""
    splits = {split: SplitInfo(1, 1, 0, sha256) for split, sha256 in zip(SPLITS, texts, strict=True)}
    return Vocab("char", ["<unk>"], [0], "", splits)


def test_other_settings_data_and_processes_have_other_checkpoints() -> None:
    first = config(), vocab("a", "b", "c"), 1
    others = [(config(lr=0.5), *first[1:]), (*first[:2], 2)]
    others += [(first[0], vocab(*hashes), 1) for hashes in (("x", "b", "c"), ("a", "x", "c"), ("b", "a", "c"))]
    keys = [checkpoint_key(*training) for training in (first, *others)]
    assert keys[0] == checkpoint_key(*first)
    assert len(set(keys)) == len(keys)


def test_only_other_code_of_training_has_other_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    training = config(), vocab("a", "b", "c"), 1
    first, real = checkpoint_key(*training), sources.code_hash

    def after_a_change_of(module: str) -> str:
        changed = ROOT / "src" / f"{module.replace('.', '/')}.py"
        monkeypatch.setattr(callbacks, "code_hash", lambda path: "x" if path == changed else real(path))
        return checkpoint_key(*training)

    assert after_a_change_of("seqlm.train.minibatches") != first
    assert after_a_change_of("seqlm.networks.compiled.training") != first
    assert after_a_change_of(ARCHITECTURES[training[0].model].module) != first
    for module in ("seqlm.pipeline.report.page", "seqlm.networks.transformer", "seqlm.models.surprisals"):
        assert after_a_change_of(module) == first


def test_two_trainings_of_one_run_do_not_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.pipeline.train.interrupts._LOCK_TIMEOUT_S", 0.3)
    with run_lock(tmp_path / "x"):
        with pytest.raises(MachineError, match="run x: another process is training it"):
            run_lock(tmp_path / "x")
        with run_lock(tmp_path / "y"):
            pass
    with run_lock(tmp_path / "x"):
        pass
