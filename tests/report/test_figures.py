"""Figures, from small tables, odd texts, and text in other scripts."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from seqlm.ngrams.counts.counting import Chunking
from seqlm.ngrams.statistics import describe, join_splits
from seqlm.report.figures import plots
from seqlm.report.figures.curves import data_figure, time_figure
from seqlm.report.figures.diagrams import graph_figure, partition_figure, strategies_figure, unrolled_figure
from seqlm.report.figures.style import model_styles, svg_text
from seqlm.vocab.corpus import load_corpus
from small_tables import FAMILIES, TIMES, curves
from subwords import build, write_splits


def test_figures_of_curves_have_a_panel_for_each_corpus_and_a_line_for_each_model() -> None:
    table = pd.concat([curves((3, 2, 1), (2.5, 2, 1)), curves((3, 2, 1), corpus="B")])
    for figure, texts in (
        (data_figure(table), ("A", "B", "characters of training text", *FAMILIES)),
        (time_figure(TIMES), ("A", "processor seconds of training", "lstm", "gru")),
    ):
        drawn = svg_text(figure)
        assert [text for text in texts if f">{text}</text>" not in drawn] == []


def test_figures_accept_models_without_some_values() -> None:
    table = pd.DataFrame(
        {"model": ["a", "b"], "family": "network", "smoothing": None, "order": None, "dynamic": False, "members": None,
         "network": "gru", "train_subset_bits": [1.0, None],
         "test_bits": [2.0, None], "ci_low": [1.9, None], "ci_high": [2.1, None]}
    )  # fmt: skip
    assert "<svg" in svg_text(plots.highlights_figure(table))
    history = pd.DataFrame({"run": ["a"] * 2, "epoch": [1, 2], "train_perplexity": [3.0, 2.0], "val_perplexity": None})
    assert "<svg" in svg_text(plots.learning_figure(history, model_styles(table)))


def test_the_drawings_show_the_given_text() -> None:
    drawn = svg_text(partition_figure("ab cd", num_steps=2, num_offsets=2))
    assert drawn.count(">offset ") == 2
    # "ab cd" in two rows: every letter twice, the space as a visible mark.
    assert [drawn.count(f">{letter}</text>") for letter in ("a", "b", "c", "d", "\u2423")] == [2] * 5
    assert svg_text(unrolled_figure("abc")).count(">b</text>") == 2  # a target, then an input
    # The graph shows the first tokens, shortened.
    words = svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    assert "machine" in words
    assert "extrao" in words
    assert "extraor" not in words
    assert words == svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    svg_text(graph_figure(list("a b")))  # a text of only three tokens


@pytest.mark.parametrize("drawing", [partition_figure, unrolled_figure, strategies_figure, graph_figure])
def test_characters_that_no_font_here_has_are_left_to_the_browser(
    drawing: Callable[..., Figure], recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    # Chinese, a private character that no font has, and a wide space.
    text = "海\U0010fffd水 sea\u3000"
    drawn = svg_text(drawing([text[:1], text[1:3], "a$b", text] if drawing is graph_figure else text))
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    assert caplog.messages == []
    assert "海" in drawn
    assert "·" in drawn  # for what is not printable


def test_a_text_of_one_token_has_figures_too(recwarn: pytest.WarningsRecorder) -> None:
    reach = pd.DataFrame({"model": "scratch", "moment": "trained", "k": [0, 1], "norm": [1.0, 0.5]})
    nothing = pd.DataFrame({"distance": [1, 2], "bits": 0.0, "shuffled_deviation": 0.0})
    svg_text(plots.information_figure(nothing, reach))
    assert not recwarn.list


def test_a_bias_within_two_standard_errors_is_not_drawn() -> None:
    rows = [("regular", 4, 0.2, 0.01, 0.001), ("randomized", 4, 0.9, 10.0, 1.0)]
    table = pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])
    convergence = pd.DataFrame({"strategy": "regular", "draws": [1, 2], "distance": 0.2, "standard_error": 0.01})
    shown = svg_text(plots.truncation_figure(table, convergence))
    assert "regular, bias" in shown
    assert "randomized, spread" in shown
    assert "randomized, bias" not in shown


def test_a_perplexity_near_the_largest_number_is_drawn() -> None:
    row = {"activation": "relu", "clip": "no clip"}
    rows = [row | {"minibatch": n, "norm": 10.0**n, "perplexity": 10.0 ** (60 * n)} for n in range(1, 6)]
    assert "<svg" in svg_text(plots.unclipped_figure(pd.DataFrame(rows)))


def test_orders_with_and_without_a_fit_share_a_figure(tmp_path: Path) -> None:
    ranks = pd.DataFrame({"n": [1, 2, 2], "rank": [1, 1, 2], "count": [9, 4, 2]})
    fit = {"max_rank": 2, "alpha_least_squares": 1.0, "intercept": 1.4}
    drawn = svg_text(plots.zipf_figure(ranks, {2: fit}))
    assert "bigram, slope -1.00" in drawn
    assert "unigram, slope" not in drawn
    # In a text of one word, no order has a fit.
    build(write_splits(tmp_path, "sea sea sea\n" * 5), tmp_path, "word", "")
    tables = describe(join_splits(load_corpus(tmp_path), Chunking(2**30, tmp_path)), 2, 3)
    fits, ranks = tables["summary"]["zipf"], pd.DataFrame(tables["zipf"])
    assert (fits, ranks["n"].tolist()) == ({}, [1, 2, 3])
    drawn = svg_text(plots.zipf_figure(ranks, fits))
    assert "trigram" in drawn
    assert "slope" not in drawn
