"""What happens while a training runs: checkpoints, and what it prints."""

from pathlib import Path

import pytest

from seqlm.train.callbacks import Checkpoint, describe_plan, periodic_saver
from seqlm.train.minibatches import Plan
from seqlm.train.trainer import Trainer
from small_training import config, trainer


def test_checkpoints_take_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, checkpoint, now, saved = (trainer(config()), Checkpoint(tmp_path / "checkpoint", "x"), [0.0], list[float]())
    monkeypatch.setattr("seqlm.train.callbacks.time.monotonic", lambda: now[0])

    def save(_: object) -> None:
        saved.append(now[0])
        now[0] += 0.01  # saving takes a hundredth of a second: the next one is due a second after it

    monkeypatch.setattr(checkpoint, "save", save)
    write = periodic_saver(checkpoint)

    def after_minibatch(trainer: Trainer) -> None:
        write(trainer)
        now[0] += 0.3

    made.train(after_minibatch)
    assert saved[:3] == pytest.approx([0, 1.21, 2.42])


def test_a_training_describes_its_plan() -> None:
    assert describe_plan(Plan.of(config(), 200)) == "540 tokens to train on: 3 epochs of 180"
    limited = "40 tokens to train on: 0.222 epochs of 180, limited by token_budget"
    assert describe_plan(Plan.of(config(token_budget=45), 200)) == limited
