"""Training: the trainer in the library, and the stage by hand."""

import csv
import json
import os
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

from workspace import ROOT, RunStage
from seqlm.train.checkpoints import Checkpoint, only_one
from seqlm.core.errors import DataError, DivergenceError, MachineError, ParamsError
from seqlm.core.files import sha256_of_file
from seqlm.rnn.scoring import stream_nats
from seqlm.train.settings import RunConfig
from seqlm.configure.runs import resolve_runs
from seqlm.train.ranks import Ranks
from seqlm.rnn.building import load_model, model_weights, save_model
from seqlm.train.trainer import Trainer
from seqlm.vocab.streams import SPLITS, build_corpus

TEXT = np.random.default_rng(0).integers(1, 6, 600)
SMALL = {"num_hiddens": 8, "num_epochs": 4, "batch_size": 4, "num_steps": 5, "max_tokens": None, "eval_every": 1}


def params() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    return found


def config(**changes: object) -> RunConfig:
    values = params() | {"num_threads": 1, "runs": {"x": SMALL | changes}}
    return resolve_runs(values, source="params.yaml")["x"]


def trainer(run: RunConfig, train: np.ndarray = TEXT, val: np.ndarray = TEXT[:50]) -> Trainer:
    return Trainer(run, 6, train, val, torch.device("cpu"))


def train(run: RunConfig) -> Trainer:
    made = trainer(run)
    made.run(lambda _: None)
    return made


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_overlays_the_defaults_and_carries_the_machine() -> None:
    values = params() | {"seed": 7, "runs": {"a": {"lr": 0.25}, "b": None}}
    runs = resolve_runs(values, source="params.yaml")
    assert (runs["a"].lr, runs["b"].lr) == (0.25, values["train"]["lr"])
    assert (runs["a"].seed, runs["a"].run) == (7, "a")


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: must map at least one"),
        ({"char-x": {}}, "does not begin with char-"),
        ({"a b": {}}, "a run's name has letters"),
        ({"../up": {}}, "a run's name has letters"),
        ({"a": 3}, "runs.a = 3: must be a mapping"),
        ({"a": {"lrate": 1}}, r"runs\.a\.lrate: unknown setting"),
        ({"a": {"num_layers": 2}}, "model scratch has one layer"),
        ({"a": {"model": "gru", "activation": "relu"}}, "activation relu belongs to"),
        ({"a": {"model": "lstm", "tie_weights": True}}, "tie_weights needs embedding: learned"),
        ({"a": {"model": "lstm", "truncation": "full"}}, "belong to model scratch"),
        ({"a": {"keep": "best", "eval_every": 1000}}, "keep: best needs a look at val"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(runs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError, match=complaint):
        resolve_runs(params() | {"runs": runs}, source="params.yaml")


@pytest.mark.parametrize("model", ["scratch", "rnn", "gru", "lstm"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_every_model_learns_a_text_that_repeats(model: str, sampling: str) -> None:
    text = np.tile([1, 2, 3, 4, 5], 120)
    run = config(model=model, sampling=sampling, num_hiddens=16, num_epochs=25, lr=2.0)
    made = trainer(run, text, text[:50])
    # Five equally frequent tokens have perplexity 5 for who knows nothing, 1 for who knows the order.
    assert np.exp(stream_nats(made.model, text[:50]).mean()) > 4
    made.run(lambda _: None)
    assert made.progress.history[-1].val_perplexity < 1.3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"truncation": "randomized"},
        {"model": "lstm", "dropout": 0.3, "optimizer": "adamw", "lr": 0.01, "schedule": "cosine", "keep": "best"},
    ],
    ids=["scratch", "randomized truncation", "lstm"],
)
def test_a_training_that_goes_on_ends_like_one_that_never_stopped(changes: dict[str, Any], tmp_path: Path) -> None:
    run = config(**changes)
    whole = train(run)
    checkpoint = Checkpoint(tmp_path, "x", "key")

    class Stop(Exception):
        pass

    def stop_after_two(made: Trainer) -> None:
        if made.progress.num_epochs == 2:
            checkpoint.save(*made.state())
            raise Stop

    with pytest.raises(Stop):
        trainer(run).run(stop_after_two)
    again = trainer(run)
    saved = checkpoint.load()
    assert saved is not None
    again.restore(*saved)
    again.run(lambda _: None)
    assert again.progress == whole.progress
    assert equal(again.chosen_weights()[1], whole.chosen_weights()[1])


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        values = params() | {"num_threads": 1, "seed": seed, "runs": {"x": SMALL | {"model": "lstm", "dropout": 0.2}}}
        return model_weights(train(resolve_runs(values, source="params.yaml")["x"]).model)

    assert equal(weights(0), weights(0))
    assert not equal(weights(0), weights(1))


def test_best_weights_are_those_of_the_best_look_at_val() -> None:
    run = config(keep="best", num_epochs=30, lr=5.0, patience=3)
    made = train(run)
    looks = [row.val_perplexity for row in made.progress.history]
    epoch, weights = made.chosen_weights()
    assert looks[epoch - 1] == min(looks)
    assert len(looks) == min(epoch + 3, 30)
    assert epoch == len(looks) or not equal(weights, model_weights(made.model))


def test_carrying_the_state_and_dropping_it_are_two_things() -> None:
    carried, dropped = train(config(carry_state=True)), train(config(carry_state=False))
    assert not equal(model_weights(carried.model), model_weights(dropped.model))


def test_divergence_stops_the_run_and_says_what_to_try() -> None:
    with pytest.raises(DivergenceError, match=r"run x: the loss is not finite in epoch \d+: set grad_clip to 1"):
        train(config(activation="relu", lr=1e6, num_steps=40, grad_clip=None, num_epochs=50))


def test_a_text_too_short_for_a_minibatch_names_what_would_fit() -> None:
    with pytest.raises(DataError, match="the largest possible are batch_size 119 at num_steps 5"):
        trainer(config(batch_size=500))


def test_full_truncation_spans_each_lane_with_one_window() -> None:
    made = train(config(truncation="full", num_epochs=1))
    assert made._num_steps == 600 // 5


def test_weights_come_back_and_changed_files_are_refused(tmp_path: Path) -> None:
    made = train(config(model="gru", embedding="learned", tie_weights=True, num_epochs=1))
    save_model(tmp_path, made.config, 6, model_weights(made.model))
    loaded = load_model(tmp_path, torch.device("cpu"), run="x")
    assert equal(model_weights(loaded), model_weights(made.model))
    with pytest.raises(DataError, match="holds the run 'x', not 'y'"):
        load_model(tmp_path, torch.device("cpu"), run="y")
    path = tmp_path / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="does not match the SHA-256"):
        load_model(tmp_path, torch.device("cpu"))
    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(description | {"format": 2}))
    with pytest.raises(DataError, match="not of format 1"):
        load_model(tmp_path, torch.device("cpu"))


def test_a_damaged_checkpoint_is_not_taken_up(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "x", "key")
    assert checkpoint.load() is None
    checkpoint.save({"a": torch.ones(2)}, {"b": 1})
    found = checkpoint.load()
    assert found is not None
    assert found[1] == {"b": 1}
    content = bytearray(checkpoint.path.read_bytes())
    content[-1] ^= 1
    checkpoint.path.write_bytes(content)
    assert checkpoint.load() is None


def test_two_trainings_of_one_run_do_not_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.checkpoints._LOCK_WAIT_S", 0.3)
    with only_one(tmp_path, "x"), pytest.raises(MachineError, match="another training"), only_one(tmp_path, "x"):
        pass
    with only_one(tmp_path, "x"):
        pass


def prepare_stage(tmp_path: Path, **changes: object) -> list[str]:
    """Write a corpus and a config into an empty workspace; return the stage's arguments."""
    texts = {}
    for split in SPLITS:
        texts[split] = tmp_path / f"{split}.txt"
        texts[split].write_text("the sea came in and the sea went out again\n" * 60)
    build_corpus(texts, tmp_path / "data/corpus/char", "char", "", 0, [])
    run = config(**({"sample_every": 2, "checkpoint_s": 0} | changes))
    (tmp_path / "x.json").write_text(run.model_dump_json())
    return ["--config", "x.json", "--models", "models", "--reports", "reports"]


def test_the_stage_leaves_weights_history_and_no_checkpoint(run_stage: RunStage, tmp_path: Path) -> None:
    result = run_stage("train", *prepare_stage(tmp_path))
    assert result.returncode == 0, result.stderr
    history = (tmp_path / "reports/history.csv").read_text().splitlines()
    assert history[0].startswith("run,epoch,train_perplexity,val_perplexity,grad_norm")
    assert len(history) == 1 + 4
    assert json.loads((tmp_path / "reports/metrics.json").read_text())["epochs"] == 4
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["model.json", "weights.safetensors"]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["x.lock"]


@pytest.mark.parametrize(
    ("changes", "code", "complaint"),
    [
        ({"device": "cuda"}, 5, "device: cuda: this machine has none"),
        ({"batch_size": 10_000}, 3, "the largest possible are"),
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
    arguments = prepare_stage(tmp_path, **changes)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"device": device}))
    result = run_stage("train", *arguments)
    assert result.returncode == code, result.stderr
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "models").exists()
    assert not (tmp_path / "reports").exists()


def checkpoint_times(folder: Path) -> list[int]:
    return [path.stat().st_mtime_ns for path in (folder / "checkpoints").glob("*.checkpoint")]


def test_killed_trainings_go_on_to_the_same_weights(run_stage: RunStage, tmp_path: Path) -> None:
    arguments = prepare_stage(tmp_path, num_epochs=300, num_hiddens=32, eval_every=50, sample_every=0)
    assert run_stage("train", *arguments).returncode == 0
    undisturbed = sha256_of_file(tmp_path / "models/weights.safetensors")
    history = (tmp_path / "reports/history.csv").read_text()
    (tmp_path / "models/weights.safetensors").unlink()
    command = [sys.executable, str(ROOT / "stages/train.py"), *arguments]
    rng, kills = np.random.default_rng(0), 0
    for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        # A signal while Python still imports may be lost: wait for a checkpoint that this process wrote.
        earlier = checkpoint_times(tmp_path)
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and checkpoint_times(tmp_path) in ([], earlier):
            time.sleep(0.02)
        time.sleep(float(rng.uniform(0, 0.2)))
        kills += process.poll() is None
        os.kill(process.pid, stop)
        process.wait(timeout=60)
    assert kills == 3
    result = run_stage("train", *arguments)
    assert "going on after epoch" in result.stdout
    assert sha256_of_file(tmp_path / "models/weights.safetensors") == undisturbed
    assert (tmp_path / "reports/history.csv").read_text() == history


def stage_history(tmp_path: Path, launcher: list[str], run: RunConfig, name: str) -> list[dict[str, str]]:
    """Run the train stage by a launcher and return its history."""
    (tmp_path / f"{run.run}.json").write_text(run.model_dump_json())
    command = [*launcher, str(ROOT / "stages/train.py"), "--config", f"{run.run}.json", "--corpus", "corpus"]
    command += ["--models", f"models-{name}", "--reports", f"reports-{name}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with (tmp_path / f"reports-{name}" / "history.csv").open() as file:
        return list(csv.DictReader(file))


LSTM = {"model": "lstm", "num_layers": 2, "embedding": "learned", "dropout": 0.3, "optimizer": "adamw", "lr": 0.01}


@pytest.mark.parametrize(
    "changes",
    [{}, {"sampling": "random", "truncation": "randomized"}, LSTM],
    ids=["sequential", "randomized", "lstm with dropout"],
)
def test_two_processes_train_as_one(changes: dict[str, Any], tmp_path: Path) -> None:
    texts = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in texts.values():
        path.write_text((ROOT / "data/sample.txt").read_text(encoding="utf-8")[:3000] + "\n", encoding="utf-8")
    build_corpus(texts, tmp_path / "corpus" / "char", "char", "\n", 0, [])
    run = config(**changes)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    one = stage_history(tmp_path, [sys.executable], run, "one")
    two = stage_history(tmp_path, torchrun, run, "two")
    assert len(one) == len(two) == 4
    for ours, theirs in zip(one, two, strict=True):
        for column in ("train_perplexity", "val_perplexity", "grad_norm"):
            assert float(ours[column]) == pytest.approx(float(theirs[column]), rel=1e-4), column


def test_lanes_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(ParamsError, match="batch_size = 4: must be a multiple of the 3 processes"):
        Trainer(config(), 6, TEXT, TEXT[:50], torch.device("cpu"), Ranks(0, 3))
