"""What is seen of a training while it goes on: on the terminal, in its folder of reports, on TensorBoard."""

import csv
import json
import math
import sys
import time
from pathlib import Path

import pytest

from seqlm.core.errors import MachineError
from seqlm.train.callbacks import Events, HistoryWriter, open_board, put_back_on_error
from seqlm.train.console import Forecast, describe_plan, duration, forecast_line
from seqlm.train.trainer import Trainer
from small_training import TEXT, config, prepare_stage, trained, trainer
from stages_by_hand import RunStage

LINE = "the sea came in and the sea went out again\n"


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "history.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_history_grows_while_a_training_goes_on(tmp_path: Path) -> None:
    growing, seen = HistoryWriter(tmp_path, seconds=0), []

    def watch(made: Trainer) -> None:
        growing(made)
        seen.append((rows(tmp_path), json.loads((tmp_path / "metrics.json").read_text())))

    made = trainer(config(eval_every=2))
    made.run(watch)
    # After every minibatch, and after every epoch; each minibatch has 20 tokens.
    assert [int(table[-1]["tokens"]) for table, _ in seen[:4]] == [20, 40, 60, 80]
    assert [float(table[-1]["epoch"]) for table, _ in seen[:2]] == [1 / 9, 2 / 9]
    assert all(float(table[-1]["epoch"]) == metrics["epoch"] for table, metrics in seen)
    assert [row["val_perplexity"] != "" for row in seen[-1][0]] == [False, True, True]
    # The end is what the training says of itself: the leg that was going on is whole.
    assert [int(row["epoch"]) for row in seen[-1][0]] == [leg.epoch for leg in made.progress.history]


def test_nothing_is_written_before_it_is_time(tmp_path: Path) -> None:
    growing = HistoryWriter(tmp_path)
    trainer(config()).run(growing)
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_files_as_they_were(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "folder" / "new.csv"
    old.write_text("before")

    def interrupted() -> None:
        with put_back_on_error(old, new):
            old.write_text("half")
            new.parent.mkdir()
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert old.read_text() == "before"
    assert not new.parent.exists()


def test_a_loss_that_overflows_is_no_number_of_metrics(tmp_path: Path) -> None:
    growing = HistoryWriter(tmp_path, seconds=0)
    made = trainer(config())

    def watch(now: Trainer) -> None:
        now._sums.nats.fill_(math.inf)
        growing(now)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.run(watch)
    assert json.loads((tmp_path / "metrics.json").read_text())["train_perplexity"] is None


def test_the_end_is_foretold_from_the_rate() -> None:
    noon = time.mktime((2026, 1, 1, 12, 0, 0, 0, 0, -1))
    # 90,000 tokens at 1,000 a second are 90 s.
    assert forecast_line(1000, 90_000, noon) == "1,000 tokens a second: done in about 2 min, at 12:01"
    long = forecast_line(1000, 36_000_000, noon)
    # 36,000 s are ten hours; 600 s of it are 600,000 tokens.
    assert long == (
        "1,000 tokens a second: done in about 10 h 0 min, at 22:00 "
        "(max_trained_tokens: 600,000 would take about ten minutes)"
    )
    assert "2026-01-02 12:00" in forecast_line(1000, 86_400_000, noon)
    assert [duration(seconds) for seconds in (3, 60, 5400, 172_800)] == ["3 s", "1 min", "1 h 30 min", "2.0 days"]


def test_a_forecast_is_made_once_and_leaves_out_the_first_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("seqlm.train.console.time.monotonic", lambda: clock[0])
    forecast, lines = Forecast(), []

    def watch(made: Trainer) -> None:
        # Seven minutes go by in the first minibatch, which compiles; a second in each of the others.
        clock[0] = 420 + made.progress.minibatches
        lines.append(forecast(made))

    trainer(config()).run(watch)
    (line,) = [line for line in lines if line]
    # Two seconds after the first minibatch: 40 tokens in 2 s, and 540 - 60 are left, 24 s.
    assert lines[2] == line
    assert line.startswith("20 tokens a second: done in about 24 s, at ")


def test_a_training_says_beforehand_what_it_will_see() -> None:
    assert describe_plan(trainer(config())) == ["540 tokens to train on: 3 epochs of 180"]
    (first, second) = describe_plan(trainer(config(max_trained_tokens=45)))
    assert first == "40 tokens to train on: 0.222 epochs of 180, where max_trained_tokens ends it"
    assert second == "it sees 22.2% of its text: raise max_trained_tokens for more"
    (_, shrunk) = describe_plan(trainer(config(), TEXT[:12]))
    assert shrunk == ("the text has 12 tokens, too few for minibatches of 4 x 5: it is trained in minibatches of 1 x 5")


def test_the_stage_shrinks_minibatches_and_says_so(run_stage: RunStage, tmp_path: Path) -> None:
    # 43 characters with the line end, which is no token: 42 * 3 = 126 tokens, 126 // 35 - 1 = 2 lanes.
    prepare_stage(tmp_path, LINE * 3, batch_size=32, num_steps=35, sample_every=1, sample_prefix="auto")
    result = run_stage("train", "--run", "x")
    assert result.returncode == 0, result.stderr
    assert "too few for minibatches of 32 x 35: it is trained in minibatches of 2 x 35" in result.stdout
    assert "epoch 1, train perplexity" in result.stdout
    assert ": the sea came in and" in result.stdout
    summary = json.loads((tmp_path / "reports/train/x/summary.json").read_text())
    assert (summary["batch_size"], summary["num_steps"], summary["shrunk"]) == (2, 35, True)
    assert (summary["tokens"], summary["epochs"], summary["bounded"]) == (3 * 70, 3, False)


class Recorded:
    """A board that keeps what it is given."""

    def __init__(self) -> None:
        self.values: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.values.append((tag, value, step))

    def close(self) -> None:
        pass


def test_events_are_the_legs_at_their_tokens() -> None:
    board, made = Recorded(), trainer(config(eval_every=2))
    made.run(Events(board, made))
    assert [step for tag, _, step in board.values if tag == "train_perplexity"] == [
        leg.tokens for leg in made.progress.history
    ]
    assert len([tag for tag, _, _ in board.values if tag == "val_perplexity"]) == 2
    # Who goes on begins after what was written.
    again = Recorded()
    Events(again, trained(config()))(made)
    assert again.values == []


def test_a_missing_tensorboard_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", None)
    with pytest.raises(MachineError, match="--tensorboard: tensorboard is not installed: pip install"):
        open_board(tmp_path, "x")


def test_tensorboard_reads_the_events(run_stage: RunStage, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    prepare_stage(tmp_path, LINE * 20)
    result = run_stage("train", "--run", "x", "--tensorboard", "board")
    assert result.returncode == 0, result.stderr
    found = accumulator.EventAccumulator(str(tmp_path / "board" / "x"))
    found.Reload()
    history = rows(tmp_path / "reports/train/x")
    assert [event.step for event in found.Scalars("train_perplexity")] == [int(row["tokens"]) for row in history]
    values = [event.value for event in found.Scalars("train_perplexity")]
    assert values == pytest.approx([float(row["train_perplexity"]) for row in history])
