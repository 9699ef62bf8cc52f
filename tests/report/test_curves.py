"""The figures of benchmarks/curves.py and what their captions say, from small tables."""

import pandas as pd
import pytest

from seqlm.report.figures.curves import data_figure, time_figure
from seqlm.report.figures.style import svg_text
from seqlm.report.findings import data_finding, time_finding

FAMILIES = {"char-kneser-ney": "ngram", "lstm": "network", "lstm+n-gram": "mixture"}


def data(*bits: tuple[float, float, float], corpus: str = "A") -> pd.DataFrame:
    """Return the test bits of an n-gram model, a network and a mixture for 10,000, 20,000 ... characters."""
    rows = [
        (corpus, model, family, 10_000 * 2**power, value)
        for power, values in enumerate(bits)
        for (model, family), value in zip(FAMILIES.items(), values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["corpus", "model", "family", "train_chars", "test_bits"])


TIMES = pd.DataFrame(
    [("A", "lstm", 1.0, 3.0), ("A", "lstm", 2.0, 2.5), ("A", "gru", 1.0, 2.6), ("A", "gru", 3.0, 2.55)],
    columns=["corpus", "model", "seconds", "val_bits"],
)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (data((3, 2, 1)), "On A, the best network beats the best n-gram model from 10,000 characters on. A mixture"),
        (
            data((2, 3, 1)),
            "On A, the best n-gram model beats the best network up to 10,000 characters. A mixture of both",
        ),
        (data((2, 3, 3), (3, 2, 1)), "On A, the best network beats the best n-gram model from 20,000 characters on."),
        # The network wins at first only, or loses at some sizes only: nothing is said.
        (data((3, 2, 1), (2, 3, 3)), ""),
        (data((2, 2, 1), (2, 3, 1)), ""),
        (data((2.01, 2, 1), (2.01, 2, 1)), ""),  # may be chance
    ],
)
def test_who_wins_from_where_on(table: pd.DataFrame, expected: str) -> None:
    found = data_finding(table)
    assert found.startswith(expected)
    assert bool(expected) == bool(found)


def test_a_mixture_wins_only_if_it_does_on_every_corpus() -> None:
    good, bad = data((3, 2, 1)), data((3, 2, 2.5), corpus="B")
    assert data_finding(good).endswith("A mixture of both is better than either.")
    assert "A mixture" not in data_finding(pd.concat([good, bad]))


def test_a_size_that_lacks_a_family_says_nothing() -> None:
    table = data((2, 3, 1), (3, 2, 1))
    found = data_finding(table[(table["family"] != "mixture") | (table["train_chars"] == 10_000)])
    assert found.startswith("On A, the best n-gram model beats the best network up to 10,000 characters.")
    assert data_finding(table[table["family"] != "mixture"]) == ""


def test_which_training_ends_lowest() -> None:
    # gru is the lowest for a while, and lstm at its end.
    assert time_finding(TIMES) == "On A, lstm ends with the fewest bits, 2.50."
    assert time_finding(TIMES[TIMES["model"] == "gru"]) == ""


def test_figures_have_a_panel_for_each_corpus_and_a_line_for_each_model() -> None:
    table = pd.concat([data((3, 2, 1), (2.5, 2, 1)), data((3, 2, 1), corpus="B")])
    drawn = svg_text(data_figure(table))
    for text in ("A", "B", "characters of training text", *FAMILIES):
        assert f">{text}</text>" in drawn
    drawn = svg_text(time_figure(TIMES))
    for text in ("A", "processor seconds of training", "lstm", "gru"):
        assert f">{text}</text>" in drawn
