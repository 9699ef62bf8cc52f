"""Figures, from small tables."""

import pandas as pd
import pytest

from seqlm.report.figures.gradients import graph_figure, information_figure, truncation_figure
from seqlm.report.figures.style import svg_text


def test_the_graph_shows_the_first_tokens_shortened() -> None:
    words = svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    assert "machine" in words
    assert "extrao" in words
    assert "extraor" not in words
    assert words == svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    svg_text(graph_figure(list("a b")))  # a text of only three tokens


def test_a_text_of_one_token_has_figures_too(recwarn: pytest.WarningsRecorder) -> None:
    reach = pd.DataFrame({"model": "scratch", "moment": "trained", "k": [0, 1], "norm": [1.0, 0.5]})
    nothing = pd.DataFrame({"distance": [1, 2], "bits": 0.0, "shuffled_deviation": 0.0})
    svg_text(information_figure(nothing, reach))
    assert not recwarn.list


def test_a_bias_within_two_standard_errors_is_not_drawn() -> None:
    rows = [("regular", 4, 0.2, 0.01, 0.001), ("randomized", 4, 0.9, 10.0, 1.0)]
    table = pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])
    convergence = pd.DataFrame({"strategy": "regular", "draws": [1, 2], "distance": 0.2, "standard_error": 0.01})
    shown = svg_text(truncation_figure(table, convergence))
    assert "regular, bias" in shown
    assert "randomized, spread" in shown
    assert "randomized, bias" not in shown
