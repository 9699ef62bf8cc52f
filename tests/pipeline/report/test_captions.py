"""Captions say what the numbers say, whatever the settings."""

from typing import Any

import pandas as pd
import pytest

from seqlm.pipeline.report import captions
from seqlm.pipeline.report.rendering import environment

CAPTION: Any = environment().get_template("captions.html").module

LABELS = {"lstm": "LSTM", "rnn": "the RNN of the chapter"}


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (3.724, 1.0, "The first letter of a word costs the LSTM the most: 3.72 bits on average. "),
        (1.0, 4.0, "The class “other” costs the LSTM the most: 4.00 bits on average."),
    ],
)
def test_the_costliest_class_of_characters_is_that_of_the_best_model(first: float, other: float, said: str) -> None:
    rows = [("lstm", "first letter", 0.2, first), ("lstm", "other", 0.8, other), ("rnn", "other", 0.8, 9.0)]
    classes = pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])
    assert CAPTION.classes(captions.costliest_class(classes, ["lstm", "rnn"], LABELS)).startswith(said)
    assert CAPTION.classes(captions.costliest_class(classes, [], LABELS)) == ""


def test_runs_are_overfitted_if_their_perplexity_on_val_rises() -> None:
    val: dict[str, list[float | None]] = {"bad": [9, 5, 7, None], "good": [9, 5, 5.1], "unknown": [None]}
    rows = [(run, epoch, value) for run, values in val.items() for epoch, value in enumerate(values, start=1)]
    history = pd.DataFrame(rows, columns=["run", "epoch", "val_perplexity"])
    said = CAPTION.overfitting(captions.overfitted_runs(history, {"bad": "Bad", "good": "Good", "unknown": "?"}))
    assert said.endswith(": Bad, from 5.0 at epoch 2 to 7.0.")
    assert CAPTION.overfitting(captions.overfitted_runs(history[history["run"] == "good"], {"good": "Good"})) == ""


@pytest.mark.parametrize(
    ("repeat", "said"), [(1.0, "repeating the last value has the smallest error: 1.00 ("), (3.5, "the MLP has the ")]
)
def test_whether_repeating_the_last_value_beats_the_networks(repeat: float, said: str) -> None:
    rows = [("MLP", 1, 9.0), ("MLP", 3, 3.0), ("RNN", 3, 4.0), ("repeat the last value", 3, repeat)]
    errors = pd.DataFrame(rows, columns=["network", "k", "rmse"])
    assert CAPTION.repeating(captions.furthest_errors(errors)).startswith(f"3 steps ahead, {said}")
    assert CAPTION.repeating(captions.furthest_errors(errors.head(1))) == ""


def test_context_helps_one_model_and_misleads_another() -> None:
    helped = [16, 8, 4.1, *[4.0] * 5]  # the third is near enough
    rows = [("lstm", place, value) for place, value in enumerate(helped, start=1)]
    rows += [("rnn", place, float(10 * place)) for place in range(1, 9)]
    positions = pd.DataFrame(rows, columns=["model", "position", "perplexity"])
    said = CAPTION.context(captions.context_facts(positions, ["lstm", "rnn"], LABELS))
    assert said.startswith("Beyond about 3 characters, more context hardly helps the LSTM. ")
    # The mean of the last quarter, 70 and 80.
    assert said.endswith(
        "Context misleads the RNN of the chapter: its perplexity is 10 after one character and 75 after 8."
    )
    assert CAPTION.context(captions.context_facts(positions.assign(perplexity=9.0), ["lstm"], LABELS)) == ""


def test_the_best_truncation_is_compared_with_none() -> None:
    rows = [("full", 48, 8.0), ("full", 48, 8.1), ("randomized", 1, 8.2), ("regular", 4, 7.0), ("regular", 4, 7.2)]
    trained = pd.DataFrame(rows, columns=["strategy", "length", "val_perplexity"])
    best = "with regular truncation to 4 tokens: 7.10, against 8.05 with no truncation."
    assert CAPTION.truncation(captions.best_truncation(trained)).endswith(best)
    assert CAPTION.truncation(captions.best_truncation(trained.head(3))).endswith("with no truncation: 8.05.")
