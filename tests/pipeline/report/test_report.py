"""Parts of pages: figures, passages under several models, what is data and no markup, colours that can be read."""

import json
import math
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from default_params import skip_if_experiment_is_applied
from seqlm.core.errors import DataError
from seqlm.core.files import read_csv, write_text
from seqlm.core.layout import Layout
from seqlm.pipeline.report import drawing
from seqlm.pipeline.report.figures import style
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import Plot, draw, read_plots
from seqlm.pipeline.report.figures.style import LineStyle, svg_text
from seqlm.pipeline.report.page import build_surprisal_page, inline_svg
from seqlm.pipeline.report.passages import align, bits_by_character, shaded_line
from seqlm.pipeline.score.excerpts import passage
from seqlm.vocab.kinds import token_kind
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


BIT = math.log(2)


def test_the_tokens_of_all_models_are_parts_of_one_text() -> None:
    characters = passage(token_kind("char"), list("cat sat"), np.arange(1, 7) * BIT, 100)
    words = passage(token_kind("word"), ["cat", "sat"], np.array([7.5]) * BIT, 100)
    found = align({"words": words, "lstm": characters})
    assert found["text"] == "cat sat"
    # The first token of each is not scored, and models over words have no cost for the space.
    assert found["models"] == {"words": [[3, None], None, [3, 7.5]], "lstm": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def test_passages_may_have_different_lengths() -> None:
    # A passage of words ends with a whole word, and a text may have words only.
    words = passage(token_kind("word"), ["cat", "sat"], np.array([np.inf]), 5)
    assert align({"words": words}) == {"text": "cat sat", "models": {"words": [[3, None], None, [3, "infinite"]]}}
    characters = passage(token_kind("char"), list("cat sa"), np.ones(5) * BIT, 6)
    shorter = align({"lstm": characters, "words": words})
    assert shorter["models"]["words"] == [[3, None], None, [2, "infinite"]]
    longer = passage(token_kind("char"), list("cat sat on"), np.ones(9) * BIT, 10)
    assert align({"lstm": longer, "words": words})["models"]["words"][3:] == [None, None, None]
    assert align({}) == {"text": "", "models": {}}


def test_the_bits_of_a_token_are_divided_among_its_characters() -> None:
    bits = bits_by_character([[1, None], [2, 3.0], 0.5, "infinite"])
    assert bits == [None, 1.5, 1.5, 0.5, math.inf]
    assert shaded_line("a", [None], 5) == ([("a", "")], 0)


def test_a_line_ends_with_a_whole_word_and_has_the_shades_of_its_bits() -> None:
    # A shade is 1.2 bits wide, and the last one has no end.
    costs = [None, 1.1, 1.2, 30.0, 0.0, "infinite", 1.0, 1.0, 1.0]
    assert shaded_line("a cat sat", costs, 5) == ([("a", ""), (" ", "s0")], 1.1)
    line, _ = shaded_line("a cat sat", costs, 9)
    assert [shade for _, shade in line] == ["", "s0", "s1", "s9", "s0", "s9", "s0", "s0", "s0"]
    assert shaded_line("catsat", [1.0] * 6, 4)[0] == [(character, "s0") for character in "cats"]


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    # A style would apply to the whole page, and an id may be that of another figure.
    svg = '<?xml version="1.0"?><svg><defs><style>svg{}</style></defs><g id="a"/><use xlink:href="#a"/></svg>'
    (tmp_path / "x.svg").write_text(svg)
    title, figure = "&#34;&gt;&lt;script&gt;", '><g id="x-a"/><use xlink:href="#x-a"/></svg>'
    assert inline_svg(tmp_path / "x.svg", '"><script>') == f'<svg role="img" aria-label="{title}"{figure}'


def test_a_passage_with_markup_is_only_data() -> None:
    values = {"perplexity": 2.0, "bits_per_character": 1.0, "tokens": 6, "unknown_share": 0.0, "separator_bits": 0.0}
    shown = passage(token_kind("word"), ["</script><b>", "&"], np.array([BIT]), 100)
    page = build_surprisal_page("x", {"a": values | {"passage": shown}}, [])
    assert "<b>" not in page
    (data,) = re.findall(r'<script type="application/json" id="passages">(.*?)</script>', page)
    assert json.loads(data)["text"] == "</script><b> &"


def test_tokens_that_dvc_writes_into_its_page_of_charts_are_text() -> None:
    page = (ROOT / ".dvc" / "plots" / "page.html").read_text(encoding="utf-8")
    before, _, after = page.partition("{plot_divs}")
    assert before.rstrip().endswith("<plaintext>")  # which nothing ends
    assert after.strip() == ""


def test_text_can_be_read_on_every_shade_and_figures_on_light_and_dark_paper() -> None:
    css = ROOT.joinpath("src/seqlm/pipeline/report/templates/page.css").read_text(encoding="utf-8")
    looks: dict[str, dict[str, list[str]]] = {}
    for names, look in re.findall(r"((?:\.[sab]\d,? )+)\{ (.*?) \}", css):
        for name in re.findall(r"\w+", names):
            values = re.findall(r"([a-z-]+): light-dark\((#\w+), (#\w+)\)", look)
            looks.setdefault(name, {}).update({key: colours for key, *colours in values})
    assert len(looks) == 20
    for name, look in looks.items():  # on light paper, then on dark paper
        assert min(map(contrast, look["color"], look["background"])) >= 4.5, name
    papers = re.findall(r"--paper: light-dark\((#\w+), (#\w+)\)", css)[0]
    colours = [getattr(style, name) for name in ["GREY", "MAGENTA", "PURPLE", "OLIVE", "BLUE", "GREEN", "VERMILION"]]
    assert [colour for colour in colours if min(contrast(colour, paper) for paper in papers) < 3] == []


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#16171a``, as the guidelines for accessibility define it."""
    values = np.array([to_rgb(one), to_rgb(other)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))
