"""What the numbers say: findings and captions, only if they are supported, the main table as text, and the summary."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.files import write_csv, write_json
from seqlm.core.layout import Layout
from seqlm.pipeline.evaluate.main_table import main_table
from seqlm.pipeline.report import captions, findings
from seqlm.pipeline.report.main_table import CELLS, table_text
from seqlm.pipeline.report.page import build_summary, scored_share
from seqlm.pipeline.report.rendering import environment
from seqlm.pipeline.score.scores import Scores
from seqlm.vocab.corpus import SPLITS

STATE: Any = environment().get_template("findings.html").module
CAPTION: Any = environment().get_template("captions.html").module

COMMON = {
    "run": None, "token": "char", "counted_token": None, "smoothing": None, "order": None, "members": None,
    "dynamic": False, "network": None, "seen_bits": 1.0, "train_chars": 10_000, "ci_low": None, "ci_high": None,
}  # fmt: skip


def table(*rows: dict) -> pd.DataFrame:
    """Return a main table; the first row is the best model, the others have the differences from it."""
    found = pd.DataFrame([COMMON | {"best_margin": 0.02 if index else None} | row for index, row in enumerate(rows)])
    found["test_bits"] = found["test_bits"].astype(float)
    gap = found["test_bits"] - found["test_bits"].iloc[0]
    verdicts = gap.map(lambda value: "worse" if value > 0 else "better")
    verdicts = verdicts.where(gap.abs() > found["best_margin"].astype(float).fillna(0.02), "not significant")
    return found.assign(label=found["model"].str.upper(), best_difference=gap, best_verdict=verdicts)


def row(model: str, family: str, val: float, test: float | None, **changes: object) -> dict:
    run = model if family == "network" else None
    return {"model": model, "family": family, "val_bits": val, "test_bits": test, "run": run} | changes


MIXTURE = row("mix", "mixture", 1.8, 1.9, members="net counts", ci_low=1.7, ci_high=2.1)
THREE = row("mix3", "mixture", 1.81, 1.91, members="net counts other")
COUNTS = row("counts", "ngram", 1.9, 1.96, counted_token="word", smoothing="kneser-ney", order=3)
LOWER = row("lower", "ngram", 2.1, 2.1, counted_token="word", smoothing="kneser-ney", order=2)
NET = row("net", "network", 2.0, 2.2)
ON_UNSEEN, ON_VAL = "Best on unseen text: ", "Best on the validation set: "


@pytest.mark.parametrize(
    ("rows", "begins", "ends"),
    [
        # Another mixture is the same thing, a member is worth a word, and so is another order of the same counts.
        ((MIXTURE, THREE, COUNTS, NET), ON_UNSEEN + "MIX, with 1.90", "0.06 ± 0.02 bits better than COUNTS alone."),
        ((COUNTS, LOWER, NET), ON_UNSEEN + "COUNTS, with 1.96", "it is 0.24 ± 0.02 bits better than NET."),
        ((COUNTS, LOWER), ON_UNSEEN, "COUNTS, with 1.96 bits per character."),
        ((MIXTURE, NET | {"test_bits": 1.91}), ON_UNSEEN, "from NET alone, 0.01 ± 0.02, is not significant."),
        # Val and test disagree.
        ((MIXTURE, NET | {"test_bits": 1.8}), ON_VAL + "MIX, with", "NET alone is 0.10 ± 0.02 bits better than it."),
        ((MIXTURE, THREE | {"test_bits": 1.89}, COUNTS), ON_VAL, "it is 0.06 ± 0.02 bits better than COUNTS alone."),
        # Small differences have more digits, and a short test has no margins.
        ((MIXTURE, NET | {"test_bits": 1.9002, "best_margin": 0.0001}), ON_UNSEEN, "it is 0.0002 ± 0.0001 bits better "
         "than NET alone."),
        ((MIXTURE, NET | {"best_margin": None}), ON_UNSEEN, "Next on the validation set: NET alone, with 2.20."),
        ((MIXTURE, NET | {"test_bits": 1.949, "best_margin": 0.053, "best_verdict": "not significant"}), ON_UNSEEN,
         "from NET alone, 0.049 ± 0.053, is not significant."),
        # Models that keep learning are not compared with.
        ((MIXTURE, NET | {"dynamic": True, "test_bits": 1.85}), ON_UNSEEN, "MIX, with 1.90 bits per character."),
        ((NET | {"test_bits": None},), ON_VAL + "NET, but ", "zero probability."),
    ],
)  # fmt: skip
def test_the_best_model_is_named_with_its_certainty(rows: tuple[dict, ...], begins: str, ends: str) -> None:
    said = STATE.best_model(findings.best_model(table(*rows)))
    assert (said[: len(begins)], said[-len(ends) :]) == (begins, ends)


def test_models_that_keep_learning_are_a_note_if_they_are_better() -> None:
    for other, ends in (({"dynamic": True, "test_bits": 1.85}, " reach 1.85."), ({"dynamic": True}, ""), ({}, "")):
        said = STATE.dynamic(findings.bits_of_better_dynamic_model(table(MIXTURE, NET | other)))
        assert said.endswith(ends)
        assert bool(said) == bool(ends)


def test_a_network_that_memorised_its_text_is_named_if_a_guess_is_better() -> None:
    guess = row("guess", "ngram", 4.7, 4.7, order=0)
    learned, memorised = NET | {"seen_bits": 1.7}, row("rnn", "network", 7.0, 7.2, seen_bits=0.3)
    said = STATE.memorising(findings.memorising_network(table(learned, guess, memorised)))
    assert re.findall(r"RNN|\d[\d.,]*\d", said) == ["RNN", "0.30", "10,000", "7.20", "4.70"]
    # Better than a guess, badly trained without memorising, infinite, or nothing to compare with.
    others = [NET | {"seen_bits": 0.2}, memorised | {"seen_bits": 3.0}, memorised | {"test_bits": None}]
    assert [findings.memorising_network(table(learned, guess, other)) for other in others] == [None] * 3
    assert findings.memorising_network(table(learned, memorised)) is None
    assert STATE.memorising(None) == ""


def test_the_summary_has_the_models_of_the_chart_and_the_findings() -> None:
    found = table(MIXTURE, COUNTS, row("guess", "ngram", 4.7, 4.7, order=0), NET | {"dynamic": True, "seen_bits": None})
    assert findings.chart_text(found).splitlines() == [
        "bits per character (lower is better)  unseen text         training text",
        "MIX                                          1.90  ±0.20           1.00",
        "COUNTS                                       1.96                  1.00",
        "GUESS                                        4.70                  1.00",
    ]


def test_highlights_are_chosen_on_val() -> None:
    # The best on val of two networks and of two n-gram models is not the best on test.
    counts = {"counted_token": "char", "smoothing": "kneser-ney", "order": 3}
    rows = [
        row("net", "network", 2, 4), row("lucky net", "network", 3, 1, seen_bits=2.9),
        row("counts", "ngram", 2.5, 5, **counts), row("lucky", "ngram", 3, 2, **counts),
    ]  # fmt: skip
    assert findings.chart_rows(table(*rows))["model"].tolist() == ["net", "counts"]
    # The rival that the answer names is in the chart: here, counts of words that predict words, beside counts of
    # words that predict characters.
    whole = row("whole", "ngram", 1.95, 2.0, token="word", counted_token="word", smoothing="kneser-ney", order=3)
    assert STATE.best_model(findings.best_model(table(COUNTS, whole, NET))).endswith("better than WHOLE.")
    assert findings.chart_rows(table(COUNTS, whole, NET))["model"].tolist() == ["counts", "whole", "net"]


def test_networks_that_are_worse_than_a_guess_are_named_once() -> None:
    guess = row("guess", "ngram", 4.7, 4.7, order=0, smoothing="uniform")
    hurried = row("hurried", "network", 7.5, 7.49, seen_bits=7.4)
    memorised = row("rnn", "network", 7.0, 7.2, seen_bits=0.3)  # has a sentence of its own
    for rows in ((NET, guess, hurried), (NET, guess, hurried, memorised)):
        said = STATE.worse(findings.worse_networks(table(*rows)))
        assert said == "Worse on unseen text than guessing, which needs 4.70: HURRIED with 7.49."
    for other in (guess, hurried):
        assert STATE.worse(findings.worse_networks(table(NET, other))) == ""


def test_counts_beat_a_network_on_a_short_text_only_if_they_do_on_val_and_on_test() -> None:
    counts = row("counts", "ngram", 1.9, 1.96, counted_token="char", order=3, smoothing="kneser-ney")
    assert findings.short_text_size(table(counts, NET)) == 10_000
    # A network that is better, on val or on test, one that is no better on the text that it saw, and a long text.
    for other in ({"val_bits": 1.8}, {"test_bits": 1.9}, {"seen_bits": 1.95}, {"train_chars": 2_000_000}):
        assert findings.short_text_size(table(counts, NET | other)) == 0
    assert findings.short_text_size(table(counts)) == 0


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


LSTM = network("lstm")
STEADY = score(LSTM, np.linspace(1, 2, 100))
ALL = {split: {"scored_share": 1.0} for split in SPLITS}


def scored(*scores: Scores) -> pd.DataFrame:
    return main_table(scores, {"char": dict.fromkeys(SPLITS, scored_text(100))}, None)


def test_the_table_by_hand() -> None:
    # 1.5 nats on average are 2.164 bits and a perplexity of 4.48, 1.0 nats are 1.443 bits and 2.72. Five blocks of 20
    # tokens differ by 0.202 nats each, so their deviation is 0.202 sqrt(2.5) / ln 2 = 0.461 bits; with 5 // 2 degrees
    # of freedom, half of the interval is 4.303 x sqrt(2) x 0.461 / sqrt(5) = 1.254.
    dynamic = score(LSTM.as_dynamic(), np.linspace(0.5, 1.5, 100))
    assert table_text(scored(STEADY, dynamic, score(ngram("never"), np.full(100, np.inf)))).splitlines() == [
        "model             test   95 %        to best    val  train  perplexity",
        "lstm              2.16  ±1.25                  2.16   2.16        4.48",
        "never         infinite                            -      -    infinite",
        "still learning: after predicting a piece of the test text, these models learn from it:",
        "lstm+dynamic      1.44  ±1.25  −0.721 ±0.000  ^1.44      -        2.72",
    ]
    # Differences that are not significant have a mark.
    shuffled = np.random.default_rng(0).permutation(STEADY.nll["test"])
    text = table_text(scored(STEADY, score(network("other"), shuffled)))
    assert len(re.findall(r"~ [+−]0.000 ±\d", text)) == 1
    assert "still learning" not in text


def test_the_perplexity_of_a_run_that_exploded_is_short() -> None:
    rows = [SimpleNamespace(test_perplexity=value) for value in (4.481, 9.1e90, None)]
    assert list(map(CELLS["perplexity"], rows)) == ["4.48", "9.1e+90", "infinite"]


def summary(folder: Path, rows: pd.DataFrame, metrics: dict, *warnings: str) -> str:
    layout = Layout(folder)
    write_csv(layout.reports("evaluate", "table.csv"), rows)
    write_json(layout.reports("evaluate", "metrics.json"), {"uniform": metrics, "lstm+dynamic": {}})
    write_json(layout.corpus_record, {"fallback": False})
    write_json(layout.reports("preprocess", "summary.json"), {"warnings": warnings})
    return build_summary(layout)


def test_the_summary_explains_what_it_has(tmp_path: Path) -> None:
    text = summary(tmp_path, scored(STEADY), ALL)
    assert text.startswith("bits per character (lower is better)")
    assert max(map(len, text.splitlines())) <= 100
    assert "chosen on the validation set" not in text
    assert text.endswith("calculated to be 5 %\n")
    shares = {"train": 0.00375, "val": 0.03, "test": 1.0}
    shares_of = {split: {"scored_share": share} for split, share in shares.items()}
    text = summary(tmp_path, scored(STEADY, score(LSTM.as_dynamic(), STEADY.nll["test"])), shares_of, "too short")
    assert text.startswith("Warning: too short.\n\nbits per character")
    assert "\n^: settings, weights or the epoch were chosen on the validation set" in text
    share = "scored: 0.38% of train, 3.00% of val, 100.00% of test, in evenly spaced passages"
    assert scored_share(Layout(tmp_path)) == share
    assert text.endswith(f"\n{share}\n")
