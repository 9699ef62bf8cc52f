"""Statements are made only if the numbers support them."""

import re
from typing import Any

import pandas as pd
import pytest

from seqlm.pipeline.report import findings
from seqlm.pipeline.report.rendering import environment

STATE: Any = environment().get_template("findings.html").module

COMMON = {
    "run": None, "token": "char", "counted_token": None, "smoothing": None, "order": None, "members": None,
    "dynamic": False, "network": None, "seen_bits": 1.0, "train_chars": 10_000, "ci_low": None, "ci_high": None,
}  # fmt: skip


def table(*rows: dict) -> pd.DataFrame:
    """Return a main table; the first row is the best model, the others have the differences from it."""
    compared = [{"best_margin": None if index == 0 else 0.02} for index in range(len(rows))]
    found = pd.DataFrame([COMMON | extra | row for extra, row in zip(compared, rows, strict=True)])
    found["test_bits"] = found["test_bits"].astype(float)
    gap = found["test_bits"] - found["test_bits"].iloc[0]
    found["best_difference"] = gap
    verdicts = gap.map(lambda value: "worse" if value > 0 else "better")
    verdicts = verdicts.where(gap.abs() > found["best_margin"].astype(float).fillna(0.02), "not significant")
    return found.assign(label=found["model"].str.upper(), best_verdict=verdicts)


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
    for other, bits in ((1.85, 1.85), (1.95, None)):
        found = table(MIXTURE, NET | {"dynamic": True, "test_bits": other})
        assert findings.bits_of_better_dynamic_model(found) == bits
    assert findings.bits_of_better_dynamic_model(table(MIXTURE, NET)) is None
    assert STATE.dynamic(1.85).endswith(" reach 1.85.")
    assert STATE.dynamic(None) == ""


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
        row("net", "network", 2, 4),
        row("lucky net", "network", 3, 1, seen_bits=2.9),
        row("counts", "ngram", 2.5, 5, **counts),
        row("lucky", "ngram", 3, 2, **counts),
    ]
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
