"""What happens while a training runs: Ctrl-C, and what it prints."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.errors import Interrupted
from seqlm.core.files import read_csv, read_json, write_table
from seqlm.train.callbacks import Checkpoint, checkpoint_writer, describe_plan
from seqlm.train.history import history_table, summarise
from seqlm.train.minibatches import Plan
from seqlm.train.trainer import Trainer
from small_training import config, trainer
from smoke import ROOT
from stages_by_hand import run_python


def test_an_overflowing_perplexity_on_val_is_empty_with_a_reason(tmp_path: Path) -> None:
    # One step that is far too long, on a text of one token: the model is certain then, and val has another token.
    made = trainer(config(num_epochs=2, batch_size=2, lr=1e5, grad_clip=None), np.full(100, 1), np.full(50, 2))
    made.train(lambda _: None)
    write_table(tmp_path, "history", history_table("x", made.progress.history))
    write_table(tmp_path, "summary", summarise(made.progress, made.num_parameters, 2, "compiled"))
    assert read_csv(tmp_path / "history.csv")["val_perplexity"].isna().all()
    summary = read_json(tmp_path / "summary.json")
    assert (summary["last_epoch_train_perplexity"], summary["last_val_perplexity"]) == (1, None)
    assert summary["reason"] == "perplexity on val is too large for a number 2 of 2 times"


INTERRUPTED = """
import click
from seqlm.pipeline.harness import stage
@stage()
def main(layout): raise KeyboardInterrupt
main()
"""


def test_any_stage_ends_with_the_shells_code_after_ctrl_c() -> None:
    done = run_python(INTERRUPTED, PYTHONPATH=f"{ROOT / 'stages'}{os.pathsep}{ROOT / 'src'}")
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("again", ["dvc repro", "dvc exp run --name cc"])
def test_ctrl_c_saves_a_checkpoint_and_an_experiment_keeps_its_name(
    again: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DVC_EXP_NAME", raising=False)
    if again.endswith("cc"):
        monkeypatch.setenv("DVC_EXP_NAME", "cc")  # as DVC does
    made, checkpoint, handler = (
        trainer(config()),
        Checkpoint(tmp_path / "checkpoint", "x"),
        signal.getsignal(signal.SIGINT),
    )

    def press(trainer: Trainer) -> None:
        if trainer.progress.minibatches == 14:
            signal.raise_signal(signal.SIGINT)

    # 14 of 9 minibatches an epoch.
    message = f"^interrupted at epoch 1.556; `{again}` continues from there$"
    with pytest.raises(Interrupted, match=message), checkpoint_writer(checkpoint) as save:
        made.train(press, save)
    saved = checkpoint.load()
    assert saved is not None
    assert saved[1]["progress"]["minibatches"] == 14
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_again_ends_at_once(tmp_path: Path) -> None:
    def press(_: Trainer) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), checkpoint_writer(Checkpoint(tmp_path / "checkpoint", "x")) as save:
        trainer(config()).train(press, save)


def test_checkpoints_take_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, checkpoint, now, saved = (trainer(config()), Checkpoint(tmp_path / "checkpoint", "x"), [0.0], list[float]())
    monkeypatch.setattr("seqlm.train.callbacks.time.monotonic", lambda: now[0])

    def save(_: object) -> None:
        saved.append(now[0])
        now[0] += 0.01  # saving takes a hundredth of a second: the next one is due a second after it

    monkeypatch.setattr(checkpoint, "save", save)
    with checkpoint_writer(checkpoint) as write:

        def after_minibatch(trainer: Trainer) -> None:
            write(trainer)
            now[0] += 0.3

        made.train(after_minibatch)
    assert saved[:3] == pytest.approx([0, 1.21, 2.42])


def test_a_training_describes_its_plan() -> None:
    assert describe_plan(Plan.of(config(), 200)) == "540 tokens to train on: 3 epochs of 180"
    limited = "40 tokens to train on: 0.222 epochs of 180, limited by token_budget"
    assert describe_plan(Plan.of(config(token_budget=45), 200)) == limited
