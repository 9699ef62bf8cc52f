"""Ctrl-C while a stage runs."""

import signal
from pathlib import Path

import pytest

from seqlm.core.errors import Interrupted
from seqlm.pipeline.train.interrupts import stop_at_ctrl_c
from seqlm.train.callbacks import Checkpoint
from seqlm.train.trainer import Trainer
from small_training import config, trainer


@pytest.mark.parametrize("again", ["dvc repro", "dvc exp run --name cc"])
def test_ctrl_c_saves_a_checkpoint_and_an_experiment_keeps_its_name(
    again: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DVC_EXP_NAME", raising=False)
    if again.endswith("cc"):
        monkeypatch.setenv("DVC_EXP_NAME", "cc")  # as DVC does
    made, checkpoint = trainer(config()), Checkpoint(tmp_path / "checkpoint", "x")
    handler = signal.getsignal(signal.SIGINT)

    def press(trainer: Trainer) -> None:
        if trainer.progress.minibatches == 14:
            signal.raise_signal(signal.SIGINT)

    # 14 of 9 minibatches an epoch.
    message = f"^interrupted at epoch 1.556; `{again}` continues from there$"
    with pytest.raises(Interrupted, match=message), stop_at_ctrl_c(checkpoint) as stop:
        made.train(press, stop)
    resumed = trainer(config())
    assert checkpoint.restore(resumed)
    assert resumed.progress.minibatches == 14
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_again_ends_at_once(tmp_path: Path) -> None:
    def press(_: Trainer) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), stop_at_ctrl_c(Checkpoint(tmp_path / "checkpoint", "x")) as stop:
        trainer(config()).train(press, stop)
