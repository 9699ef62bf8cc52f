"""What a training prints: its plan, and when it will end."""

from datetime import datetime
from types import SimpleNamespace

import pytest

from seqlm.train.callbacks import describe_plan, forecast, sample_prefix, terminal
from seqlm.train.trainer import Trainer
from seqlm.vocab.vocabulary import Vocab
from small_training import TEXT, config, trainer

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


def test_a_forecast_is_printed_once_and_leaves_out_the_first_minibatch(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    made, printed = trainer(config(sample_every=0)), []
    with terminal(made, VOCAB, "a") as show:

        def callback(now: Trainer) -> None:
            # Seven minutes pass in the first minibatch, which compiles; a second in each of the others.
            clock.now = 420 + now.progress.minibatches
            show(now)
            printed.append(capsys.readouterr().out)

        made.run(callback)
    (line,) = filter(None, printed)
    # Two seconds after the first minibatch: 40 tokens in 2 s, and 540 - 60 are left, 24 s.
    assert printed[2] == line
    assert line.startswith("20 tokens per second: done in about 0:00:24, at ")


def test_a_training_without_a_second_minibatch_has_no_forecast(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
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
