"""Captions say what the numbers say, whatever the settings."""

import pandas as pd
import pytest

from seqlm.report import captions

LABELS = {"lstm": "the LSTM", "rnn": "the RNN"}


def test_the_costliest_class_of_characters_is_that_of_the_best_model() -> None:
    def classes(first: float, other: float) -> pd.DataFrame:
        rows = [("lstm", "first letter", 0.2, first), ("lstm", "other", 0.8, other), ("rnn", "other", 0.8, 9.0)]
        return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])

    said = captions.class_caption(classes(3.724, 1.0), ["lstm", "rnn"], LABELS)
    assert said.startswith("The first letter of a word costs the LSTM most: 3.72 bits on average. Which word")
    assert (
        captions.class_caption(classes(1.0, 4.0), ["lstm"], LABELS)
        == "The class “other” costs the LSTM most: 4.00 bits on average."
    )
    assert captions.class_caption(classes(1.0, 4.0).iloc[:0], [], LABELS) == ""


def test_runs_are_overfitted_if_their_perplexity_on_val_rises() -> None:
    def history(**val: list[float | None]) -> pd.DataFrame:
        runs = [
            pd.DataFrame({"run": run, "epoch": range(1, len(of) + 1), "val_perplexity": of}) for run, of in val.items()
        ]
        return pd.concat(runs)

    labels = {"bad": "Bad", "good": "Good", "unknown": "?"}
    said = captions.overfitting_caption(history(bad=[9, 5, 7, None], good=[9, 5, 5.1], unknown=[None]), labels)
    assert said == "Overfitting, with perplexity on val rising towards the end: Bad, from 5.0 at epoch 2 to 7.0."
    assert captions.overfitting_caption(history(good=[9.0, 5.0, 5.1]), labels) == ""


@pytest.mark.parametrize(
    ("repeat", "said"),
    [
        (1.0, "repeating the last value has the smallest error: 1.00 ({0}), 3.00 (MLP), 4.00 (RNN)."),
        (3.5, "the MLP has the smallest error: 3.00 (MLP), 3.50 ({0}), 4.00 (RNN)."),
    ],
)  # fmt: skip
def test_whether_repeating_the_last_value_beats_the_networks(repeat: float, said: str) -> None:
    rows = [("MLP", 1, 9.0), ("MLP", 3, 3.0), ("RNN", 3, 4.0), ("repeat the last value", 3, repeat)]
    errors = pd.DataFrame(rows, columns=["network", "k", "rmse"])
    assert captions.repeating_caption(errors) == "3 steps ahead, " + said.format("repeat the last value")
    assert captions.repeating_caption(errors.head(1)) == ""


def test_context_helps_one_model_and_misleads_another() -> None:
    helped = [16, 8, *[4.0] * 6]
    rows = [("lstm", place, value) for place, value in enumerate(helped, start=1)]
    rows += [("rnn", place, float(10 * place)) for place in range(1, 9)]
    positions = pd.DataFrame(rows, columns=["model", "position", "perplexity"])
    assert captions.position_caption(positions, ["lstm", "rnn"], LABELS) == (
        "Beyond about 3 characters, more context hardly helps the LSTM. "
        "Context misleads the RNN: its perplexity is 10 after one character and 75 after 8."
    )
    assert captions.position_caption(positions, ["rnn"], LABELS).startswith("Context misleads the RNN")
    flat = positions.assign(perplexity=9.0)
    assert captions.position_caption(flat, ["lstm"], LABELS) == ""
    assert captions.position_caption(positions.iloc[:1], ["lstm"], LABELS) == ""


def test_the_best_truncation_is_compared_with_none() -> None:
    rows = [("full", 48, 8.0), ("full", 48, 8.1), ("randomized", 1, 8.2), ("regular", 4, 7.0), ("regular", 4, 7.2)]
    trained = pd.DataFrame(rows, columns=["strategy", "length", "val_perplexity"])
    best = "Perplexity is lowest with regular truncation to 4 tokens: 7.10, against 8.05 with no truncation."
    assert captions.trained_caption(trained) == best
    assert captions.trained_caption(trained.head(3)) == "Perplexity is lowest with no truncation: 8.05."
