"""Captions state a finding only if the numbers support it."""

import pandas as pd
import pytest

from seqlm.report.findings import (
    class_finding,
    growth_finding,
    leader_findings,
    overfitting_finding,
    radius_finding,
    sine_finding,
    smoothing_finding,
    zipf_finding,
)

LEADER = {
    "model": "lstm", "bits": 2.0, "low": 1.9, "high": 2.1, "against": "counts", "difference": -0.05, "margin": 0.0111,
    "verdict": "better", "best_on_test": None, "best_on_test_bits": 2.0,
}  # fmt: skip
TIE = {"verdict": "not told apart", "best_on_test": "lucky", "best_on_test_bits": 1.95}
NEVER = {"bits": None, "low": None, "high": None, "verdict": None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            "lstm, with 2.000 bits per character on test (95 % interval 1.900 to 2.100). "
            "It is better than counts by 0.050 ± 0.011.",
        ),
        (
            TIE,
            "lstm, with 2.000 bits per character on test (95 % interval 1.900 to 2.100). "
            "It is not told apart from counts (-0.050 ± 0.011). "
            "(Val chose this model; on test, lucky is best, with 1.950.)",
        ),
        (NEVER, "lstm, but it gives some token of test zero probability."),
        ({"low": None, "high": None, "verdict": None}, "lstm, with 2.000 bits per character on test."),
    ],
)
def test_the_best_model_is_named_with_its_certainty(changes: dict, expected: str) -> None:
    found = leader_findings({"static": LEADER | changes, "dynamic": None})
    assert found == {
        "static": f"Unseen text is predicted best by {expected}", "dynamic": "",
    }  # fmt: skip


@pytest.mark.parametrize(("alpha", "follows"), [(0.96, True), (0.0, False), (1.9, False)])
def test_words_follow_zipf_s_law_only_with_an_exponent_near_one(alpha: float, follows: bool) -> None:
    assert ("follow" in zipf_finding({"1": {"alpha_likelihood": alpha}, "2": {"alpha_likelihood": 1.0}})) == follows


def test_without_a_fit_nothing_is_said_of_zipf_s_law() -> None:
    assert zipf_finding({}) == ""


@pytest.mark.parametrize(
    ("beta", "unknown_share", "expected"),
    [
        (0.78, 0.093, "New words keep coming, but ever more slowly. In test, 9.3% of the words do not occur in train."),
        # Random letters: every word is new.
        (
            1.0,
            1.0,
            "Almost all words are new, however long the text is. In test, 100.0% of the words do not occur in train.",
        ),
        # One repeated line.
        (0.0, 0.0, ""),
        (None, 0.0, ""),
    ],
)
def test_the_growth_of_the_vocabulary(beta: float | None, unknown_share: float, expected: str) -> None:
    assert growth_finding(beta, unknown_share) == expected


def test_a_smoothing_method_is_praised_only_if_it_is_best_for_every_kind_of_token() -> None:
    rows = [("char", "laplace", 3, 2.8), ("char", "kneser-ney", 6, 2.1), ("word", "kneser-ney", 3, 2.0)]
    columns = ["token", "smoothing", "order", "bits_per_character"]
    finding = "For every kind of token, the best model on test uses kneser-ney smoothing."
    assert smoothing_finding(pd.DataFrame(rows, columns=columns)) == finding
    assert smoothing_finding(pd.DataFrame([*rows, ("word", "laplace", 2, 1.9)], columns=columns)) == ""
    assert smoothing_finding(pd.DataFrame(rows[1:], columns=columns)) == ""  # there is no other


def test_the_costliest_class_of_characters_is_that_of_the_table() -> None:
    def table(first: float, other: float) -> pd.DataFrame:
        rows = [("lstm", "first letter", 0.2, first), ("lstm", "other", 0.8, other), ("worse", "other", 0.8, 9.0)]
        return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])

    assert class_finding(table(3.724, 1.0)).startswith("The costliest class for lstm is “first letter”: 3.72 bits")
    assert "Which word comes next" in class_finding(table(3.724, 1.0))
    assert class_finding(table(1.0, 4.0)) == "The costliest class for lstm is “other”: 4.00 bits on average."
    assert class_finding(table(1.0, 4.0).iloc[:0]) == ""


def test_runs_are_overfitted_if_their_perplexity_on_val_rises() -> None:
    def history(**val: list[float | None]) -> pd.DataFrame:
        return pd.concat([pd.DataFrame({"run": run, "val_perplexity": values}) for run, values in val.items()])

    found = overfitting_finding(history(bad=[9.0, 5.0, 7.0, None], good=[9.0, 5.0, 5.1], unknown=[None]))
    assert found == "Overfitted at the end, with rising perplexity on val: bad."
    assert overfitting_finding(history(good=[9.0, 5.0, 5.1])) == ""


def test_spectral_radii_above_one_are_explained() -> None:
    radii = {"scratch": {"initial": 0.5, "trained": 1.4}, "relu": {"initial": 0.5, "trained": 0.9}}
    assert "above 1 after training (scratch)" in radius_finding(radii)
    assert radius_finding({"relu": radii["relu"]}) == ""


def test_errors_rise_with_the_number_of_steps_only_if_they_do() -> None:
    assert sine_finding({"k_1": 0.2, "k_4": 0.25, "k_16": 0.3}) != ""
    assert sine_finding({"k_1": 0.2, "k_4": 0.3, "k_16": 0.25}) == ""
    assert sine_finding({"k_1": 0.2}) == ""
