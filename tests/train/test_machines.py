"""A training on two machines, each with a folder of its own: two torchruns that find each other."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ruamel.yaml import YAML
from torch.distributed.run import parse_args

from seqlm.core.layout import Layout
from seqlm.train.callbacks import Checkpoint, checkpoint_key
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab
from small_training import config, free_port, history_rows, prepare_stage
from smoke import ROOT

CHANGES = {"num_epochs": 4, "sample_every": 0}


@pytest.fixture
def machines(tmp_path: Path) -> list[Layout]:
    text = "the sea came in and the sea went out again\n" * 20
    return [prepare_stage(tmp_path / name, text, **CHANGES) for name in ("first", "second")]


def trained(layout: Layout, num_epochs: int) -> Trainer:
    """Return a training of one process that stopped after so many epochs."""
    ids = {split: load_split(layout.corpus("char"), split) for split in ("train", "val")}
    vocab = Vocab.load(layout.vocab("char"))

    class Stop(Exception):
        pass

    def stop(trainer: Trainer) -> None:
        if trainer.progress.num_epochs == num_epochs:
            raise Stop

    trainer = Trainer(config(**CHANGES), len(vocab), ids["train"], ids["val"], torch.device("cpu"))
    with pytest.raises(Stop):
        trainer.train(stop)
    return trainer


def checkpoint_of_two(layout: Layout) -> Checkpoint:
    """Return the place of the checkpoint of two processes, in the folder of one of them."""
    return Checkpoint(layout.checkpoints / "x", checkpoint_key(config(**CHANGES), Vocab.load(layout.vocab("char")), 2))


def run_together(machines: list[Layout]) -> Iterator[str]:
    """Train on both at once; yield what each prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command += ["--master-addr", "127.0.0.1", "--master-port", free_port()]
    processes = [
        subprocess.Popen(
            [*command, "--node-rank", str(rank), str(ROOT / "stages/train.py"), "--model", "x", "--root", layout.root],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, layout in enumerate(machines)
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=90)
            assert process.returncode == 0, output
            yield output
    finally:
        for process in processes:
            process.terminate()  # torchrun then ends the training that it started
            process.wait(timeout=60)


def test_torchrun_leaves_the_stages_command_alone() -> None:
    stage = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["train"]["do"]
    script = stage["cmd"].replace("${launcher} ", "").replace("${key}", "x").split()
    arguments = parse_args(["--standalone", "--nproc-per-node", "2", *script])
    assert [arguments.training_script, *arguments.training_script_args] == script


@pytest.mark.slow
@pytest.mark.parametrize("has_checkpoint", [[True, False], [False, True], [True, True]], ids=str)
def test_all_resume_from_the_first_machines_checkpoint(has_checkpoint: list[bool], machines: list[Layout]) -> None:
    # The second's checkpoint, if it has one, is of another epoch.
    for layout, has, epochs in zip(machines, has_checkpoint, (2, 3), strict=True):
        if has:
            state = trained(layout, epochs).state()
            checkpoint_of_two(layout).save(state | {"processes": state["processes"] * 2})
    first, second = run_together(machines)
    assert ("resuming after epoch 2" in first) == has_checkpoint[0]
    assert "resuming" not in second
    history = history_rows(machines[0])
    whole = trained(machines[0], 4).progress.history
    assert [int(row["epoch"]) for row in history] == [row.epoch for row in whole] == [1, 2, 3, 4]
    for ours, theirs in zip(history, whole, strict=True):
        assert float(ours["val_perplexity"]) == pytest.approx(theirs.val_perplexity, rel=1e-4)
    assert json.loads(machines[0].reports("train", "x", "summary.json").read_text())["epochs"] == 4
    assert not machines[1].runs.exists()
