"""Captions state a finding only if the numbers support it."""

import pandas as pd
import pytest

from seqlm.report import findings

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
    assert found == "These runs overfit; their perplexity on val rises towards the end: bad."
    assert findings.overfitting_finding(history(good=[9.0, 5.0, 5.1])) == ""


def test_highlights_are_chosen_on_val() -> None:
    # The best on val of two networks and of two n-gram models is not the best on test.
    rows = [
        ("net", "network", 2, 4),
        ("lucky net", "network", 3, 1),
        ("counts", "ngram", 2, 5),
        ("lucky", "ngram", 3, 2),
    ]
    table = pd.DataFrame(rows, columns=["model", "family", "val_bits", "test_bits"]).assign(
        order=[None, None, 3, 3], train_chars=9, epoch="best", token="char", counted_token="char",
        smoothing="kneser-ney", dynamic=False, only_words=False,
    )  # fmt: skip
    assert findings.highlights(table)["model"].tolist() == ["net", "counts"]
