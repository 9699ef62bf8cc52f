"""Captions state a finding only if the numbers support it."""

import pandas as pd
import pytest

from seqlm.report import findings
from small_tables import TIMES, curves

LEADER = {
    "model": "lstm", "bits": 2.0, "ci_low": 1.9, "ci_high": 2.1, "against": "counts", "difference": -0.05,
    "margin": 0.0111, "verdict": "better", "best_on_test": None, "best_on_test_bits": 2.0,
}  # fmt: skip
TIE = {"margin": 0.06, "verdict": "not significant", "best_on_test": "lucky", "best_on_test_bits": 1.95}
UNKNOWN = {"ci_low": None, "ci_high": None, "verdict": None}
WITH_INTERVAL = "lstm, with 2.000 bits per character on test (95 % interval 1.900 to 2.100)."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f"{WITH_INTERVAL} It is significantly better than counts, by 0.050 ± 0.011."),
        (
            TIE,
            f"{WITH_INTERVAL} The difference from counts is not significant (-0.050 ± 0.060). "
            "(Val chose this model; on test, lucky is best, with 1.950.)",
        ),
        (UNKNOWN | {"bits": None}, "lstm, but it gives some token of test zero probability."),
        (UNKNOWN, "lstm, with 2.000 bits per character on test."),
    ],
)
def test_the_best_model_is_named_with_its_certainty(changes: dict, expected: str) -> None:
    found = findings.leader_findings({"static": LEADER | changes, "dynamic": None})
    assert found == {"static": f"Unseen text is predicted best by {expected}", "dynamic": ""}


def test_words_follow_zipf_s_law_only_with_an_exponent_near_one() -> None:
    for alpha, follows in ((0.96, True), (0.0, False), (1.9, False)):
        found = findings.zipf_finding({"1": {"alpha_likelihood": alpha}, "2": {"alpha_likelihood": 1.0}})
        assert ("follow" in found) == follows, alpha
    assert findings.zipf_finding({}) == ""


def test_the_growth_of_the_vocabulary() -> None:
    slower = "New words keep coming, but ever more slowly. In test, 9.3% of the words do not occur in train."
    assert findings.growth_finding(0.78, 0.093) == slower
    # Random letters: every word is new.
    always = "Almost all words are new, however long the text is. In test, 100.0% of the words do not occur in train."
    assert findings.growth_finding(1.0, 1.0) == always
    # One repeated line, and no exponent.
    assert findings.growth_finding(0.0, 0.0) == findings.growth_finding(None, 0.0) == ""


def test_a_smoothing_method_is_praised_only_if_it_is_best_for_every_kind_of_token() -> None:
    rows = [("char", "laplace", 3, 2.8), ("char", "kneser-ney", 6, 2.1), ("word", "kneser-ney", 3, 2.0)]
    finding = "For every kind of token, the best model on test uses kneser-ney smoothing."
    # Without a method to compare with, nothing is said.
    for chosen, expected in ((rows, finding), ([*rows, ("word", "laplace", 2, 1.9)], ""), (rows[1:], "")):
        table = pd.DataFrame(chosen, columns=["token", "smoothing", "order", "bits_per_character"])
        assert findings.smoothing_finding(table) == expected


def test_the_costliest_class_of_characters_is_that_of_the_table() -> None:
    def table(first: float, other: float) -> pd.DataFrame:
        rows = [("lstm", "first letter", 0.2, first), ("lstm", "other", 0.8, other), ("worse", "other", 0.8, 9.0)]
        return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])

    assert findings.class_finding(table(3.724, 1.0)).startswith(
        "The costliest class for lstm is “first letter”: 3.72 bits"
    )
    assert "Which word comes next" in findings.class_finding(table(3.724, 1.0))
    assert findings.class_finding(table(1.0, 4.0)) == "The costliest class for lstm is “other”: 4.00 bits on average."
    assert findings.class_finding(table(1.0, 4.0).iloc[:0]) == ""


def test_runs_are_overfitted_if_their_perplexity_on_val_rises() -> None:
    def history(**val: list[float | None]) -> pd.DataFrame:
        return pd.concat([pd.DataFrame({"run": run, "val_perplexity": values}) for run, values in val.items()])

    found = findings.overfitting_finding(history(bad=[9.0, 5.0, 7.0, None], good=[9.0, 5.0, 5.1], unknown=[None]))
    assert found == "Overfitted at the end, with rising perplexity on val: bad."
    assert findings.overfitting_finding(history(good=[9.0, 5.0, 5.1])) == ""


def test_spectral_radii_above_one_are_explained() -> None:
    radii = {"scratch": {"initial": 0.5, "trained": 1.4}, "relu": {"initial": 0.5, "trained": 0.9}}
    assert "above 1 after training (scratch)" in findings.radius_finding(radii)
    assert findings.radius_finding({"relu": radii["relu"]}) == ""


def test_errors_rise_with_the_number_of_steps_only_if_they_do() -> None:
    assert findings.sine_finding({"k_1": 0.2, "k_4": 0.25, "k_16": 0.3}) != ""
    assert findings.sine_finding({"k_1": 0.2, "k_4": 0.3, "k_16": 0.25}) == findings.sine_finding({"k_1": 0.2}) == ""


MIXTURE = " A mixture of both is better than either."


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        ([(3, 2, 1)], f"On A, the best network beats the best n-gram model from 10,000 characters on.{MIXTURE}"),
        ([(2, 3, 1)], f"On A, the best n-gram model beats the best network up to 10,000 characters.{MIXTURE}"),
        ([(2, 3, 3), (3, 2, 1)], "On A, the best network beats the best n-gram model from 20,000 characters on."),
        # The network wins at first only, or loses at some sizes only: nothing is said.
        ([(3, 2, 1), (2, 3, 3)], ""),
        ([(2, 2, 1), (2, 3, 1)], ""),
        ([(2.01, 2, 1), (2.01, 2, 1)], ""),  # may be chance
    ],
)
def test_who_wins_from_where_on(bits: list[tuple[float, float, float]], expected: str) -> None:
    assert findings.data_finding(curves(*bits)) == expected


def test_a_mixture_wins_only_if_it_does_on_every_corpus() -> None:
    assert MIXTURE not in findings.data_finding(pd.concat([curves((3, 2, 2.5)), curves((3, 2, 1), corpus="B")]))


def test_a_size_that_lacks_a_family_says_nothing() -> None:
    table = curves((2, 3, 1), (3, 2, 1))
    found = findings.data_finding(table[(table["family"] != "mixture") | (table["train_chars"] == 10_000)])
    assert found.startswith("On A, the best n-gram model beats the best network up to 10,000 characters.")
    assert findings.data_finding(table[table["family"] != "mixture"]) == ""


def test_which_training_ends_lowest() -> None:
    # gru is the lowest for a while, and lstm at its end.
    assert findings.time_finding(TIMES) == "On A, lstm ends with the fewest bits, 2.50."
    assert findings.time_finding(TIMES[TIMES["model"] == "gru"]) == ""
