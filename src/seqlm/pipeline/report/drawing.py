"""Draws every figure of the page from the tables of the stages."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pandas as pd
from matplotlib.figure import Figure

from seqlm.core.files import read_csv, read_json, write_text
from seqlm.core.layout import Layout
from seqlm.core.progress import count_noun
from seqlm.pipeline.evaluate.names import NETWORK_NAMES, ngram_name
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import Plot, draw, read_plots
from seqlm.pipeline.report.figures.style import model_styles, svg_text
from seqlm.pipeline.report.findings import best_first, chart_rows
from seqlm.pipeline.report.main_table import read_main_table
from seqlm.vocab.kinds import token_kind

Figures = Iterator[tuple[str, Figure]]
"""Pairs of a name and a figure."""
Plots = dict[str, Plot]
CORPORA = ("time_machine", "tiny_shakespeare")
"""Texts of benchmarks/curves.py; pages of other texts leave its figures out."""
MAX_RUNS = 6
"""Runs whose learning curves are drawn."""
_CURVES = NETWORK_NAMES | {
    "char-kneser-ney": "character n-grams",
    "char-by-word-kneser-ney": "word n-grams",
    "lstm+n-gram": "LSTM + n-grams",
}
_STUDIED = NETWORK_NAMES | {"scratch": "RNN with tanh", "relu": "RNN with ReLU"}
_LEAST_NORM = 1e-12
"""Smallest gradient norm that is drawn, relative to that at the last token."""
_SMOOTHING_WINDOW = 9
"""Positions whose perplexities are averaged, because single ones are noisy."""


def draw_all(layout: Layout) -> None:
    """Draw every figure into its own file, such as ``evaluate-highlights`` or ``curves-data``.

    Names begin with the stage or benchmark whose tables they show. Raises DataError if a table is
    missing or broken; then no file changes.
    """
    plots = read_plots(layout.pipeline)
    subjects = (draw_models, draw_ngrams, draw_sine, draw_gradients, draw_curves)
    figures = chain.from_iterable(subject(layout, plots) for subject in subjects)
    svgs = {name: svg_text(figure) for name, figure in figures}
    for name, svg in svgs.items():
        write_text(layout.figure(name), svg)


def extreme_models(models: pd.Series, table: pd.DataFrame) -> list[str]:
    """At most three models, best first: the best of each family and the worst of all, on val."""
    rows = best_first(table[table["model"].isin(models)])
    best = rows.drop_duplicates("family")["model"]
    return list(dict.fromkeys([*best, *rows["model"].tail(1)]))[:3]


def smoothed(positions: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's perplexities by position, averaged over neighbours except at the beginning."""
    rows = positions[positions["model"] == model]
    means = rows["perplexity"].rolling(_SMOOTHING_WINDOW, center=True, min_periods=1).mean()
    is_smoothed = rows["position"] > _SMOOTHING_WINDOW
    return rows.assign(perplexity=means.where(is_smoothed, rows["perplexity"]))


def draw_models(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``evaluate`` stage."""
    table = read_main_table(layout)
    yield "evaluate-highlights", highlights_figure(chart_rows(table))
    styles = model_styles(table)

    positions, plot = _plotted(layout, plots, "evaluate/positions")
    models = extreme_models(positions["model"], table)
    smooth = pd.concat([positions.head(0), *(smoothed(positions, model) for model in models)])
    yield "evaluate-positions", draw(smooth, plot, "model", styles=styles)

    orders, plot = _plotted(layout, plots, "evaluate/orders")
    nouns = orders["token"].map(lambda token: token_kind(token).noun)
    orders["series"] = nouns + "s, " + orders["smoothing"].str.title()
    yield "evaluate-orders", draw(orders, plot, "series")

    history = read_csv(layout.reports("evaluate", "history.csv"))
    runs = best_first(table[table["model"].isin(history["run"])])["model"].head(MAX_RUNS)
    shown = pd.concat([history.head(0), *(history[history["run"] == run] for run in runs)])
    plot = plots["Perplexity of the runs"]
    yield "evaluate-learning", draw(shown, plot, styles=styles, panels="run", columns=2)


def draw_ngrams(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``ngrams`` stage."""
    for name, group, named in (
        ("word/zipf", "n", ngram_name),
        ("word/growth", "", None),
        ("char/epsilons", "order", "order {}".format),
    ):
        table, plot = _plotted(layout, plots, f"ngrams/{name}")
        if named:
            table[group] = table[group].map(named)
        yield f"ngrams-{name.replace('/', '-')}", draw(table, plot, group)


def draw_sine(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``sine`` stage."""
    table = read_csv(layout.reports("sine", "predictions.csv"))
    names = {"one_step": "one step ahead", "multi_step": "from its own earlier predictions"}
    ks = {name: int(name[6:]) for name in table if name.startswith("ahead_")}
    ahead = {name: f"{count_noun(k, 'step')} ahead" for name, k in ks.items()}
    plot = replace(plots["Predictions of the sine"], y=["prediction"])
    for figure, columns in (("sine-steps", names), ("sine-ahead", ahead)):
        long = table.melt(["time", "observed"], list(columns), "panel", "prediction")
        long = long.replace({"panel": columns}).rename(columns={"observed": "data"})
        yield figure, draw(long, plot, panels="panel", reference="data")
    yield "sine-errors", draw(*_plotted(layout, plots, "sine/errors"), "network")


def draw_gradients(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``gradients`` stage."""
    reach, plot = _plotted(layout, plots, "gradients/reach")
    reach = reach[reach["norm"] >= _LEAST_NORM]  # a curve ends where it leaves the scale
    yield (
        "gradients-reach",
        draw(reach.replace({"model": _STUDIED}), plot, "model", panels="moment"),
    )

    truncation = read_csv(layout.reports("gradients", "truncation.csv"))
    is_biased = truncation["bias"] > 2 * truncation["standard_error"]  # not by chance alone
    truncation["bias"] = truncation["bias"].where(is_biased)
    yield "gradients-truncation", draw(truncation, plots["Truncated gradients"], "strategy")

    radius, plot = _plotted(layout, plots, "gradients/radius")
    yield "gradients-radius", draw(radius.replace({"model": _STUDIED}), plot, "model")
    yield "gradients-trained", draw(*_plotted(layout, plots, "gradients/trained"), "strategy")


def _plotted(layout: Layout, plots: Plots, name: str) -> tuple[pd.DataFrame, Plot]:
    """A table of the reports, and the plot of it that ``dvc.yaml`` describes."""
    return read_csv(layout.reports(f"{name}.csv")), plots[f"reports/{name}.csv"]


def draw_curves(layout: Layout, _: Plots) -> Figures:
    """Figures of benchmarks/curves.py, on the pages of its texts only."""
    if read_json(layout.corpus_record)["name"] not in CORPORA:
        return
    test, val = (f"bits per character on the {name} set" for name in ("test", "validation"))
    for name, plot in (
        ("data", Plot("train_chars", ["test_bits"], "characters of training text", test, "logx")),
        ("time", Plot("seconds", ["val_bits"], "processor seconds of training", val, "logx")),
    ):
        table = read_csv(layout.benchmark(f"curves_{name}.csv")).replace({"model": _CURVES})
        yield f"curves-{name}", draw(table, plot, "model", panels="corpus")
