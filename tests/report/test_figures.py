"""Figures, from small tables, odd texts, and text in other scripts."""

import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from seqlm.core.errors import DataError
from seqlm.core.files import read_csv, write_text
from seqlm.core.layout import Layout
from seqlm.ngrams.statistics import describe, join_splits
from seqlm.report.drawing import draw_all
from seqlm.report.figures import plots, style
from seqlm.report.figures.curves import data_figure, time_figure
from seqlm.report.figures.diagrams import graph_figure, partition_figure, strategies_figure, unrolled_figure
from seqlm.report.figures.style import model_styles, svg_text
from seqlm.report.page import inline_svg
from seqlm.vocab.corpus import load_corpus
from smoke import ROOT
from subwords import build, write_splits


def test_figures_of_curves_have_a_panel_for_each_corpus_and_name_each_model_once() -> None:
    families = {"char-kneser-ney": "ngram", "lstm": "network", "lstm+n-gram": "mixture"}
    names = ("character n-grams", "LSTM", "LSTM + n-grams")
    sizes = pd.DataFrame(
        [(corpus, *model, size, 10 / size) for corpus in "AB" for model in families.items() for size in (1, 2)],
        columns=["corpus", "model", "family", "train_chars", "test_bits"],
    )
    times = sizes.rename(columns={"train_chars": "seconds", "test_bits": "val_bits"})
    for figure, x_label in ((data_figure(sizes), "characters of training text"),
                            (time_figure(times), "processor seconds of training")):  # fmt: skip
        drawn = svg_text(figure)
        assert [text for text in ("A", "B", x_label, *names) if drawn.count(f">{text}</text>") != 1] == []


def test_the_curves_are_what_the_page_says_of_them() -> None:
    table = read_csv(Layout(ROOT).benchmark("curves_data.csv"))
    best = table.pivot_table(index=["corpus", "train_chars"], columns="family", values="test_bits", aggfunc="min")
    assert (best["mixture"] < best[["ngram", "network"]].min(axis=1)).all()
    assert (best["ngram"] < best["network"] - 0.02).loc["The Time Machine"].all()


def test_figures_accept_models_without_some_values() -> None:
    table = pd.DataFrame(
        {"model": ["a", "b"], "label": ["A", "B"], "family": "network", "smoothing": None, "order": None,
         "dynamic": False, "members": None, "network": "gru", "seen_bits": [1.0, None],
         "test_bits": [2.0, None], "ci_low": [1.9, None], "ci_high": [2.1, None]}
    )  # fmt: skip
    drawn = svg_text(plots.highlights_figure(table))
    assert ">95 % interval<" in drawn
    assert ">still learning<" not in drawn
    assert ">still learning<" in svg_text(plots.highlights_figure(table.assign(dynamic=[False, True])))
    with warnings.catch_warnings(action="error"):  # of a layout without room for the axes
        svg_text(plots.highlights_figure(table.assign(label="a name that is longer than the figure is wide" * 4)))
    history = pd.DataFrame({"run": ["a"] * 2, "epoch": [1, 2], "train_perplexity": [3.0, 2.0], "val_perplexity": None})
    assert "<svg" in svg_text(plots.learning_figure(history, model_styles(table), ["a"]))


def test_the_best_of_each_family_and_the_worst_model_are_contrasted() -> None:
    table = pd.DataFrame(
        [("net", "network", 2.0), ("counts", "ngram", 1.9), ("worse", "network", 2.5), ("worst", "network", None)],
        columns=["model", "family", "val_bits"],
    )
    assert plots.contrasting(set(table["model"]), table) == ["counts", "net", "worst"]
    assert plots.contrasting({"net"}, table) == ["net"]
    assert plots.contrasting(set(), table) == []


def test_text_in_figures_of_data_has_the_colour_of_the_page() -> None:
    drawings = ("book-partition", "book-unrolled", "gradients-strategies", "gradients-graph")
    for path in (ROOT / "reports" / "figures").glob("*.svg"):
        fills = set(re.findall(r'<text[^>]* fill="([^"]*)"', path.read_text(encoding="utf-8")))
        assert path.stem in drawings or fills <= {"currentColor"}, path


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


def test_a_bias_within_two_standard_errors_is_not_drawn() -> None:
    rows = [("regular", 4, 0.2, 0.01, 0.001), ("randomized", 4, 0.9, 10.0, 1.0)]
    table = pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])
    convergence = pd.DataFrame({"strategy": "regular", "draws": [1, 2], "distance": 0.2, "standard_error": 0.01})
    shown = svg_text(plots.truncation_figure(table, convergence))
    assert "regular, bias" in shown
    assert "randomized, spread" in shown
    assert "randomized, bias" not in shown


def test_orders_with_and_without_a_fit_share_a_figure(tmp_path: Path) -> None:
    ranks = pd.DataFrame({"n": [1, 2, 2], "rank": [1, 1, 2], "count": [9, 4, 2]})
    fit = {"max_rank": 2, "alpha_least_squares": 1.0, "intercept": 1.4}
    drawn = svg_text(plots.zipf_figure(ranks, {2: fit}))
    assert "bigram, slope -1.00" in drawn
    assert "unigram, slope" not in drawn
    # In a text of one word, no order has a fit.
    build(write_splits(tmp_path, "sea sea sea\n" * 5), tmp_path, "word", "")
    tables = describe(join_splits(load_corpus(tmp_path), None, tmp_path), 3)
    fits, ranks = tables["summary"]["zipf"], pd.DataFrame(tables["zipf"])
    assert (fits, ranks["n"].tolist()) == ({}, [1, 2, 3])
    drawn = svg_text(plots.zipf_figure(ranks, fits))
    assert "trigram" in drawn
    assert "slope" not in drawn


def test_a_figure_is_the_same_as_matplotlib_would_save_it(tmp_path: Path) -> None:
    drawn, saved = (plots.trained_figure(read_csv(ROOT / "reports" / "gradients" / "trained.csv")) for _ in range(2))
    with mpl.rc_context(style.RC_PARAMS):
        saved.savefig(tmp_path / "saved.svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    text = (tmp_path / "saved.svg").read_text().replace("#010203", "currentColor")
    assert style._compact(text) == svg_text(drawn)


def test_a_figure_is_light_on_a_dark_page(tmp_path: Path) -> None:
    drawn = svg_text(unrolled_figure("the time"))
    assert "@media (prefers-color-scheme: dark){svg{color: #e6edf3}}" in drawn
    write_text(tmp_path / "drawn.svg", drawn)
    # Inside a page, a style would apply to the whole page.
    assert "prefers-color-scheme" not in inline_svg(tmp_path / "drawn.svg", "a network")


def test_a_table_that_is_missing_leaves_the_figures_as_they_were(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for name in ("preprocess", "gradients"):
        shutil.copytree(ROOT / "reports" / name, layout.reports(name))
    write_text(layout.figure("book-unrolled"), "old")
    with pytest.raises(DataError, match=r"summary\.json: no such file: run the stage that writes it"):
        draw_all(layout)
    assert [path.read_text() for path in layout.figure("x").parent.iterdir()] == ["old"]
