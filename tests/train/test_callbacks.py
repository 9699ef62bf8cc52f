"""What happens while a training runs: Ctrl-C, and what it prints."""

import os
import signal
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from seqlm.core.errors import Interrupted
from seqlm.core.files import read_csv, read_json, write_table
from seqlm.train.callbacks import describe_plan, forecast, sample_prefix, stop_at_interrupt, terminal
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.history import history_table, summarise
from seqlm.train.trainer import Trainer
from seqlm.vocab.vocabulary import Vocab
from small_training import TEXT, config, trained, trainer
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


def test_a_second_interrupt_does_not_wait_for_the_minibatch(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "key")
    before = signal.getsignal(signal.SIGINT)
    with stop_at_interrupt(checkpoint) as stop:
        stop(trainer(config()))  # nothing was interrupted
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted, match="interrupted at epoch 3; `dvc repro` continues from there"):
            stop(trained(config()))
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoint.load() is not None


INTERRUPTED = """
import click
from harness import stage
@stage()
def main(layout): raise KeyboardInterrupt
main()
"""


def test_any_stage_ends_with_the_shells_code_after_ctrl_c() -> None:
    done = run_python(INTERRUPTED, PYTHONPATH=f"{ROOT / 'stages'}{os.pathsep}{ROOT / 'src'}")
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


VOCAB = Vocab("char", ["<unk>", *"aehst "], [0] * 7, "", {})


def test_the_end_is_forecast_from_the_speed() -> None:
    noon = datetime(2026, 1, 1, 12)
    # 90,000 tokens at 1,000 per second are 90 s.
    assert forecast(1000, 90_000, noon) == "1,000 tokens per second: done in about 0:01:30, at 12:01"
    # 36,000 s are ten hours; 600 s of it are 600,000 tokens.
    assert forecast(1000, 36_000_000, noon) == (
        "1,000 tokens per second: done in about 10:00:00, at 22:00 (token_budget: 600,000 would take about ten minutes)"
    )
    assert "about 2 days, 3:00:00, at 15:00 (token_budget: 700,000 would" in forecast(1234, 1234 * 183_600, noon)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr("seqlm.train.callbacks.time.monotonic", lambda: found.now)
    return found


def test_a_forecast_leaves_out_one_minibatch(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    made, printed = trainer(config(sample_every=0)), []
    with terminal(made, VOCAB, "a") as show:

        def callback(now: Trainer) -> None:
            # Seven minutes pass in the first minibatch, which compiles; a second in each of the others.
            clock.now = 420 + now.progress.minibatches
            show(now)
            printed.append(capsys.readouterr().out)

        made.train(callback)
    (line,) = filter(None, printed)
    # Two seconds after the first minibatch: 40 tokens in 2 s, and 540 - 60 are left, 24 s.
    assert printed[2] == line
    assert line.startswith("20 tokens per second: done in about 0:00:24, at ")


def test_one_minibatch_gives_no_forecast(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    made = trainer(config(sample_every=0))
    with terminal(made, VOCAB, "a") as show:
        made.progress.minibatches = 1
        show(made)
        clock.now = 100.0  # at the end of an epoch of one minibatch, after a slow evaluation
        show(made)
    assert capsys.readouterr().out == ""


def test_a_training_describes_its_plan() -> None:
    assert describe_plan(trainer(config())) == ["540 tokens to train on: 3 epochs of 180"]
    assert describe_plan(trainer(config(token_budget=45))) == [
        "40 tokens to train on: 0.222 epochs of 180, limited by token_budget",
        "this is 22.2% of the text: raise token_budget to train on more",
    ]
    assert "limited by max_flops" in describe_plan(trainer(config(max_flops=1000)))[0]
    (_, reduced) = describe_plan(trainer(config(), TEXT[:12]))
    assert reduced == "the text has 12 tokens, too few for minibatches of 4 x 5: it is cut into minibatches of 1 x 5"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("the sea", "the sea"),
        ("the xyz", "the xyz"),  # 4 of 7 characters are known
        ("xyz sea!!!", "sea the eat"),  # 4 of 10
        ("时间旅行者", "sea the eat"),
        ("auto", "sea the eat"),
    ],
)
def test_samples_continue_val_if_most_of_the_prefix_is_unknown(setting: str, expected: str) -> None:
    val = VOCAB.encode(list("sea the eat"))
    assert sample_prefix(config(sample_prefix=setting), VOCAB, val) == expected


def test_a_val_of_unknown_tokens_has_no_samples() -> None:
    assert sample_prefix(config(sample_prefix="auto"), VOCAB, np.zeros(9, np.int64)) == ""
