"""The train stage by hand: what it leaves, what it refuses, two processes, and runs that are gone."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML
from torch.distributed.run import parse_args

from seqlm.core.layout import Layout
from seqlm.pipeline.download.stale_runs import clear_stale_runs
from seqlm.train.callbacks import Checkpoint, checkpoint_key
from seqlm.train.trainer import Checkpointed, Trainer
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab
from small_training import config, history_rows, in_state, prepare_stage
from smoke import ROOT, environment_of_python
from stages_by_hand import RunStage, in_this_process, refused, succeeded

LINE = "the sea came in and the sea went out again\n"


def test_the_stage_leaves_weights_history_and_no_checkpoint_of_the_run(run_stage: RunStage, tmp_path: Path) -> None:
    layout = prepare_stage(tmp_path, LINE * 15, num_epochs=4, sample_every=2, num_threads=2)
    abandoned = [layout.checkpoints / run / "of-other-settings.checkpoint" for run in ("x", "x-2")]
    for path in abandoned:
        path.parent.mkdir(parents=True)
        path.touch()
    printed = succeeded(run_stage("train", "--model", "x"))
    # 8 hidden units and 16 characters, <unk> among them: 16 * 8 + 8 * 8 + 8 + 8 * 16 + 16 parameters.
    assert printed.startswith("x: scratch over char tokens, 8 hidden units, 344 parameters, on cpu\n")
    assert "epoch 2, train perplexity" in printed
    assert ": the sea came in and" in printed  # a text of the corpus is continued, and not time traveller
    rows = history_rows(layout)
    assert list(rows[0])[:5] == ["run", "epoch", "train_perplexity", "val_perplexity", "grad_norm"]
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    # 43 characters with the line end, which is no token: 42 * 15 tokens, 31 minibatches of 4 x 5 an epoch.
    summary = json.loads(layout.reports("train", "x", "summary.json").read_text())
    assert (summary["tokens"], summary["epochs"]) == (4 * 31 * 20, 4)
    files = [path.name for path in layout.run("x").iterdir()]
    assert sorted(files) == ["model.json", "samples.json", "weights.safetensors"]
    described = json.loads(layout.description_of_run("x").read_text())
    assert described["metadata"]["defaults"] == {"device": "cpu", "num_threads": 2}
    # Some versions of filelock remove it.
    assert {path.name for path in (layout.checkpoints / "x").iterdir()} <= {"lock"}
    assert abandoned[1].exists()  # it is another run's


def test_the_stage_trains_on_train_and_evaluates_on_val(run_stage: RunStage, tmp_path: Path) -> None:
    changes = {"num_epochs": 2, "checkpoint": "best"}
    layout = prepare_stage(tmp_path, LINE * 15, "in and out again\n" * 9, "a sea\n" * 9, **changes)
    succeeded(run_stage("train", "--model", "x"))
    train_ids, val_ids = (load_split(layout.corpus("char"), split) for split in ("train", "val"))
    vocab = Vocab.load(layout.vocab("char"))
    made = Trainer(config(**changes), len(vocab), train_ids, val_ids, "cpu")
    made.train(lambda _: None)
    for row, wanted in zip(history_rows(layout), made.progress.history, strict=True):
        found = float(row["train_perplexity"]), float(row["val_perplexity"])
        assert found == pytest.approx((wanted.train_perplexity, wanted.val_perplexity))


@pytest.mark.parametrize(
    ("changes", "code", "complaint"),
    [
        ({"device": "cuda"}, 5, "device: cuda: this machine has none"),
        ({"max_tokens": 24}, 3, "24 tokens are too few"),
        ({"activation": "relu", "lr": 1e6, "num_steps": 40, "grad_clip": None}, 6, "the loss is not finite"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    changes: dict[str, Any], code: int, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    if "device" in changes and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    layout = prepare_stage(tmp_path, LINE * 60, **changes)
    refused(run_stage("train", "--model", "x"), code, complaint)
    assert not layout.runs.exists()
    assert not layout.reports("train").exists()


def start_two(first: Layout, second: Layout | None = None) -> str:
    """Run the train stage in this process and in a copy of it, as torchrun would in two new ones; return its output.

    The two have one folder, or each its own, as on two machines.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    if not (other := os.fork()):
        code = 1
        try:
            code = in_this_process((second or first).root)("train", "--model", "x", **variables, RANK="1").returncode
        finally:
            os._exit(code)  # this copy never runs the tests that follow
    try:
        return succeeded(in_this_process(first.root)("train", "--model", "x", **variables, RANK="0"))
    finally:
        _, status = os.waitpid(other, 0)
        assert status == 0


def torchrun(layout: Layout) -> None:
    command = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["train"]["do"]["cmd"]
    launcher = "torchrun --standalone --nproc-per-node 2"
    command = command.replace("${launcher}", launcher).replace("${key}", "x")
    words = shlex.split(command.replace("stages/train.py", str(ROOT / "stages/train.py")))
    environment = environment_of_python()
    succeeded(subprocess.run(words, cwd=layout.root, env=environment, capture_output=True, text=True, timeout=300))


RANDOMIZED = {"sampling": "random", "truncation": "randomized"}
LSTM = {"model": "lstm", "num_layers": 2, "embedding": "learned", "dropout": 0.3, "optimizer": "adamw", "lr": 0.01}
# AdamW amplifies a difference in the last digit much faster, in the framework's layers too.
COMPILED = LSTM | {"num_hiddens": 128, "optimizer": "sgd", "lr": 0.5}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux copies processes")
@pytest.mark.parametrize(
    ("changes", "start"),
    [
        pytest.param({}, start_two, id="sequential"),
        pytest.param(RANDOMIZED, start_two, id="randomized", marks=pytest.mark.slow),
        pytest.param(LSTM, start_two, id="lstm with dropout", marks=pytest.mark.slow),
        pytest.param(COMPILED, torchrun, id="compiled lstm", marks=pytest.mark.slow),
    ],
)
def test_two_processes_train_as_one(
    changes: dict[str, Any], start: Callable[[Layout], object], run_stage: RunStage, tmp_path: Path
) -> None:
    text = (ROOT / "data/sample.txt").read_text(encoding="utf-8")[:3000] + "\n"
    layout = prepare_stage(tmp_path, text, num_epochs=4, **changes)
    succeeded(run_stage("train", "--model", "x"))
    one = history_rows(layout)
    start(layout)
    two = history_rows(layout)
    assert two != one  # they add up in another order
    assert len(one) == len(two) == 4
    for ours, theirs in zip(one, two, strict=True):
        for column in ("train_perplexity", "val_perplexity", "grad_norm"):
            assert float(ours[column]) == pytest.approx(float(theirs[column]), rel=1e-4), column


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux copies processes")
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_two_machines_resume_from_the_checkpoint_of_the_first(has_checkpoint: bool, tmp_path: Path) -> None:
    changes = {"num_epochs": 4, "sample_every": 0}
    first, second = layouts = [prepare_stage(tmp_path / name, LINE * 20, **changes) for name in ("first", "second")]
    vocab = Vocab.load(first.vocab("char"))
    ids = [load_split(first.corpus("char"), split) for split in ("train", "val")]
    made = Trainer(config(**changes), len(vocab), ids[0], ids[1], "cpu")
    states: dict[int, Checkpointed] = {}
    made.train(lambda now: states.setdefault(now.progress.num_epochs, now.state()))
    # The second machine's checkpoint is of another epoch.
    for layout, epoch in zip(layouts, (2, 3), strict=True):
        if has_checkpoint or layout is second:
            arrays, values = states[epoch]
            arrays = arrays | {f"carried.1.{name[10:]}": arrays[name] for name in arrays if name.startswith("carried")}
            values = values | {"totals": values["totals"] * 2}
            key = checkpoint_key(config(**changes), vocab, 2)
            Checkpoint(layout.checkpoints / "x" / "checkpoint", key).save(in_state(arrays, values))
    assert ("resuming after epoch 2\n" in start_two(first, second)) == has_checkpoint
    for row, wanted in zip(history_rows(first), made.progress.history, strict=True):
        assert float(row["val_perplexity"]) == pytest.approx(wanted.val_perplexity, rel=1e-4)
    assert not second.runs.exists()


def test_torchrun_leaves_the_stages_command_alone() -> None:
    stage = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["train"]["do"]
    script = stage["cmd"].replace("${launcher} ", "").replace("${key}", "x").split()
    arguments = parse_args(["--standalone", "--nproc-per-node", "2", *script])
    assert [arguments.training_script, *arguments.training_script_args] == script


def test_the_runs_are_listed_if_one_is_unknown(run_stage: RunStage) -> None:
    refused(run_stage("score", "--model", "nope"), 3, "data/models/runs: holds no trained run: run the train stage")
    refused(run_stage("train", "--model", "nope"), 3, "data/configs: holds no run's settings: run the configure stage")
    succeeded(run_stage("configure"))
    names = "concise-random, concise-sequential, lstm, scratch-random, scratch-sequential"
    refused(run_stage("train", "--model", "nope"), 2, f"error: there is no run 'nope', only {names}\n")


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ("runs: {a: {token: char}}", ["a"]),
        *((wrong, ["a", "gone"]) for wrong in ("{}", "runs: {}", "runs: null", "runs: [a]")),
    ],
)
def test_stale_runs_go_with_their_results_and_checkpoints_unless_the_list_of_runs_is_wrong(
    params: str, left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, printed = Layout(tmp_path), list[str]()
    layout.params.write_text(params)
    for run in ("a", "gone"):
        Checkpoint(layout.checkpoints / run / "checkpoint", "key").save(in_state({}, {}))
        (layout.checkpoints / run / "lock").touch()
        (layout.reports("train") / run).mkdir(parents=True)
    monkeypatch.setenv("DVC_STAGE", "download")
    clear_stale_runs(layout, printed.append, print)
    folders = layout.reports("train"), layout.checkpoints
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [left, left]
    removed = [f"removed {folder / 'gone'}: no such run is left" for folder in folders if "gone" not in left]
    assert printed == removed
