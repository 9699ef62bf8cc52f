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


AT_THE_END = "3 steps ahead, the errors are 1.00 (repeat the last value), 3.00 (MLP) and 4.00 (RNN)."


@pytest.mark.parametrize(
    ("repeat", "said"),
    [
        ([1.0, 1.0, 1.0], f"At every distance, repeating the last value beats both networks: {AT_THE_END}"),
        ([5.0, 1.0, 1.0], f"From 2 steps ahead on, repeating the last value beats both networks: {AT_THE_END}"),
        ([1.0, 1.0, 3.5], "3 steps ahead, MLP has the smallest error: 3.50 (repeat the last value), 3.00 (MLP)"),
    ],
)
def test_whether_repeating_the_last_value_beats_the_networks(repeat: list[float], said: str) -> None:
    errors = {"MLP": [2.0, 2.0, 3.0], "RNN": [2.0, 3.0, 4.0], "repeat the last value": repeat}
    rows = [(network, k, rmse) for network, of in errors.items() for k, rmse in enumerate(of, start=1)]
    assert captions.repeating_caption(pd.DataFrame(rows, columns=["network", "k", "rmse"])).startswith(said)


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
    assert captions.position_caption(flat, ["lstm"], LABELS) == "Context hardly helps the LSTM."
    assert captions.position_caption(positions.iloc[:1], ["lstm"], LABELS) == ""


def test_models_that_claim_too_much_are_right_less_often() -> None:
    rows = [("lstm", 0.5, 0.52, 10), ("lstm", 0.9, 0.88, 10), ("rnn", 0.9, 0.4, 10)]
    found = captions.calibration_caption(
        pd.DataFrame(rows, columns=["model", "confidence", "accuracy", "tokens"]), LABELS
    )
    assert found == (
        "Closest to the diagonal: the LSTM, 2.0 percentage points away on average. "
        "Furthest: the RNN, 50.0 percentage points; this model is right less often than it claims."
    )


@pytest.mark.parametrize(
    ("best", "others"),
    [
        ([7.0, 7.1], "All other seeds are worse."),
        ([7.0, 8.2], "Its seeds overlap with those of no truncation and randomized truncation to 1 token."),
    ],
)
def test_the_best_truncation_is_stated_with_its_certainty(best: list[float], others: str) -> None:
    rows = [("full", 48, 0, 8.0), ("full", 48, 1, 8.1), ("randomized", 1, 0, 8.2), ("randomized", 1, 1, 8.3)]
    rows += [("regular", 4, seed, value) for seed, value in enumerate(best)]
    trained = pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])
    assert captions.trained_caption(trained) == (
        f"The mean of 2 seeds is lowest with regular truncation to 4 tokens: {sum(best) / 2:.2f}, against 8.05 with "
        f"no truncation. {others}"
    )
    full = captions.trained_caption(trained[trained["strategy"] != "regular"])
    assert full == "The mean of 2 seeds is lowest with no truncation: 8.05. All other seeds are worse."
    alone = captions.trained_caption(trained[trained["seed"] == 0].tail(1))
    assert alone == f"Perplexity is lowest with regular truncation to 4 tokens: {best[0]:.2f}."


def test_the_largest_spectral_radius_is_stated_if_it_is_neither_the_first_nor_the_last() -> None:
    rows = [("scratch", 0, 0.1), ("scratch", 9, 2.6), ("scratch", 18, 1.8), ("relu", 0, 0.6), ("relu", 18, 1.1)]
    radius = pd.DataFrame(rows, columns=["model", "minibatch", "spectral_radius"])
    said = "RNN with tanh, from 0.10 to 1.80 (at most 2.60); RNN with ReLU, from 0.60 to 1.10"
    assert captions.radius_caption(radius) == f"Its spectral radius: {said}."


def test_clipping_is_stated_with_the_limit() -> None:
    history = pd.DataFrame({"run": ["lstm", "rnn"], "clipped_share": [0.1, 0.43]})
    said = captions.clipping_caption(history, LABELS, {"lstm": 1.0, "rnn": 0.5})
    assert said == "Over all its epochs, the RNN clips most: 43 % of its steps had a norm above 0.5."


def test_large_epsilons_are_written_out() -> None:
    curve = pd.DataFrame({"order": [1, 1, 2], "epsilon": [0.001, 1.0, 681.3], "val_perplexity": [2.0, 3.0, 1.0]})
    assert captions.epsilon_caption(curve) == "Best on val: 0.001 (smallest tried) for order 1 and 681 for order 2."


def test_small_numbers_are_written_with_powers_of_ten() -> None:
    reach = pd.DataFrame(
        [("lstm", "trained", 5, 0.25), ("scratch", "trained", 5, 9.7e-5), ("gru", "trained", 5, 0.0)],
        columns=["model", "moment", "k", "norm"],
    )
    left = "0.25 (LSTM), 1 × 10⁻⁴ (RNN with tanh) and 0 (GRU)"
    assert captions.reach_caption(reach) == f"After training, 5 steps back, this much is left of the gradient: {left}."
