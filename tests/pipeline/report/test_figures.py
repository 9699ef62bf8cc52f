"""Figures, from small tables, odd texts, and text in other scripts."""

import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from default_params import skip_if_experiment_is_applied
from seqlm.core.errors import DataError
from seqlm.core.files import read_csv, write_text
from seqlm.core.layout import Layout
from seqlm.pipeline.report import drawing
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import Plot, draw, read_plots
from seqlm.pipeline.report.figures.style import LineStyle, svg_text
from smoke import ROOT

LOGLOG = Plot("x", ["y"], "the x", "the y", "loglog")


def test_a_figure_has_a_line_for_each_group_and_a_panel_for_each_value() -> None:
    rows = [(corpus, model, x, 10 / x) for corpus in ("sea", "sand") for model in ("a", "b") for x in (1, 2, 4)]
    table = pd.DataFrame(rows, columns=["corpus", "model", "x", "y"])
    figure = draw(table, LOGLOG, "model", panels="corpus")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["sea", "sand"]
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    drawn = svg_text(figure)
    # Each name is said once.
    assert [text for text in ("a", "b", "sea", "sand", "the x", "the y") if drawn.count(f">{text}</text>") != 1] == []
    # Without colour, lines differ by their dashes and marks.
    assert len({(line.get_linestyle(), line.get_marker()) for line in figure.axes[0].lines}) == 2
    assert svg_text(draw(table, LOGLOG, "model", panels="corpus")) == drawn


def test_what_has_no_place_on_a_scale_is_left_out_and_equal_places_are_averaged() -> None:
    table = pd.DataFrame({"x": [0.0, 1, 1, 2, 3], "y": [5.0, 1, 3, 0, 4]})
    marks, line = draw(table, LOGLOG).axes[0].lines
    assert marks.get_xydata().tolist() == table.to_numpy().tolist()
    assert line.get_xydata().tolist() == [[1, 2], [3, 4]]
    # On plain scales, everything has a place.
    line = draw(table, Plot("x", ["y"], "", "")).axes[0].lines[-1]
    assert line.get_xydata().tolist() == [[0, 5], [1, 2], [2, 0], [3, 4]]


def test_several_columns_have_different_dashes_and_a_long_line_few_points() -> None:
    table = pd.DataFrame({"run": "lstm", "x": range(1, 5001), "a_perplexity": range(1, 5001), "b": None})
    plot = Plot("x", ["a_perplexity", "b"], "", "", "logx")
    figure = draw(table, plot, styles={"lstm": LineStyle("red", name="L")}, panels="run")
    line = figure.axes[0].lines[0]
    assert 100 < len(line.get_xdata()) <= 200
    assert {1, 5000} <= set(line.get_xdata())
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert figure.axes[0].get_title(loc="left") == "L"


def test_the_curves_are_what_the_page_says_of_them() -> None:
    table = read_csv(Layout(ROOT).benchmark("curves_data.csv"))
    best = table.pivot_table(index=["corpus", "train_chars"], columns="family", values="test_bits", aggfunc="min")
    assert (best["mixture"] < best[["ngram", "network"]].min(axis=1)).all()
    assert (best["ngram"] < best["network"] - 0.02).loc["The Time Machine"].all()


@pytest.mark.parametrize("subject", [drawing.draw_ngrams, drawing.draw_sine, drawing.draw_gradients])
def test_the_stored_figures_are_those_of_the_stored_tables(subject: Callable[..., drawing.Figures]) -> None:
    skip_if_experiment_is_applied()
    for name, figure in subject(Layout(ROOT), read_plots(ROOT / "dvc.yaml")):
        drawn, stored = svg_text(figure), Layout(ROOT).figure(name).read_text(encoding="utf-8")
        # The same words and lines; another version of Matplotlib may place them elsewhere.
        assert re.findall(">([^<]*)</text>", drawn) == re.findall(">([^<]*)</text>", stored), name
        assert len(re.findall("<use|<path", drawn)) == len(re.findall("<use|<path", stored)), name


def test_charts_accept_models_without_some_values() -> None:
    table = pd.DataFrame(
        {"model": ["a", "b"], "label": ["A", "B"], "family": "network", "smoothing": None, "order": None,
         "dynamic": False, "members": None, "network": "gru", "seen_bits": [1.0, None],
         "test_bits": [2.0, None], "ci_low": [1.9, None], "ci_high": [2.1, None]}
    )  # fmt: skip
    assert ">95 % interval<" in svg_text(highlights_figure(table))
    with warnings.catch_warnings(action="error"):  # of a layout without room for the axes
        svg_text(highlights_figure(table.assign(label="a name that is longer than the figure is wide" * 4)))
    assert "海" in svg_text(highlights_figure(table.assign(label="海")))  # fonts for it are left to the browser


def test_the_best_of_each_family_and_the_worst_model_are_contrasted() -> None:
    table = pd.DataFrame(
        [("net", "network", 2.0), ("counts", "ngram", 1.9), ("worse", "network", 2.5), ("worst", "network", None)],
        columns=["model", "family", "val_bits"],
    )
    assert drawing.extreme_models(table["model"], table) == ["counts", "net", "worst"]
    assert drawing.extreme_models(table["model"].head(1), table) == ["net"]
    assert drawing.extreme_models(table["model"].head(0), table) == []


def test_positions_are_averaged_over_neighbours_but_not_the_first() -> None:
    values = [*[1.0] * 9, *[10.0] * 9]
    positions = pd.DataFrame({"model": "a", "position": range(1, 19), "perplexity": values})
    found = drawing.smoothed(positions, "a")["perplexity"].tolist()
    assert found[:9] == [1.0] * 9
    assert found[9] == pytest.approx((4 * 1 + 5 * 10) / 9)  # positions 6 to 14


def test_a_table_that_is_missing_leaves_the_figures_as_they_were(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    shutil.copytree(ROOT / "reports" / "evaluate", layout.reports("evaluate"))
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    write_text(layout.figure("evaluate-orders"), "old")
    with pytest.raises(DataError, match=r"zipf\.csv: no such file: run the stage that writes it"):
        drawing.draw_all(layout)
    assert [path.read_text() for path in layout.figure("x").parent.iterdir()] == ["old"]
