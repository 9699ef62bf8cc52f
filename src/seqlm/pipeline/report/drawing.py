"""Draws every figure of the page from the tables of the stages."""

from collections.abc import Collection, Iterator
from itertools import chain

import pandas as pd
from matplotlib.figure import Figure

from seqlm.core.files import read_csv, read_json, write_text
from seqlm.core.layout import Layout
from seqlm.models.names import NETWORK_NAMES
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import Plot, draw, read_plots
from seqlm.pipeline.report.figures.style import model_styles, svg_text
from seqlm.pipeline.report.findings import highlights, read_main_table
from seqlm.vocab.kinds import token_kind

Drawn = Iterator[tuple[str, Figure]]
CORPORA = ("time_machine", "tiny_shakespeare")
"""The texts of benchmarks/curves.py; the page of another text leaves its figures out."""
MAX_RUNS = 6
"""Runs whose learning curves are drawn."""
_CURVES = NETWORK_NAMES | {
    "char-kneser-ney": "character n-grams",
    "char-by-word-kneser-ney": "word n-grams",
    "lstm+n-gram": "LSTM + n-grams",
}
_STUDIED = {"scratch": "RNN with tanh", "relu": "RNN with ReLU", "gru": "GRU", "lstm": "LSTM"}
_LEAST_NORM = 1e-12
"""Of a gradient, relative to that at the last token."""
_SMOOTHING_WINDOW = 9
"""Positions whose perplexities are averaged, because those of single positions are noisy."""


def draw_all(layout: Layout) -> None:
    """Draw every figure into a file of its own.

    A figure is named after the stage or benchmark whose tables it shows: ``evaluate-highlights``,
    ``curves-data``. Raises DataError if a table is missing or broken.
    """
    # All figures are drawn before the first is written, so that a broken table leaves the files
    # unchanged.
    subjects, plots = (
        (_of_models, _of_ngrams, _of_sine, _of_gradients, _of_curves),
        read_plots(layout.pipeline),
    )
    drawn = {
        name: svg_text(figure)
        for name, figure in chain.from_iterable(of(layout, plots) for of in subjects)
    }
    for name, text in drawn.items():
        write_text(layout.figure(name), text)


def contrasting(models: Collection[str], table: pd.DataFrame) -> list[str]:
    """Return at most three of some models, the best on val first: the best of each family, and the
    worst of all."""
    rows = table[table["model"].isin(models)].sort_values("val_bits", kind="stable")
    best = rows.drop_duplicates("family")["model"]
    return list(dict.fromkeys([*best, *rows["model"].tail(1)]))[:3]


def smoothed(positions: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return a model's perplexities by position, averaged over neighbours except at the
    beginning."""
    rows = positions[positions["model"] == model]
    smooth = rows["perplexity"].rolling(_SMOOTHING_WINDOW, center=True, min_periods=1).mean()
    return rows.assign(
        perplexity=smooth.where(rows["position"] > _SMOOTHING_WINDOW, rows["perplexity"])
    )


def _of_models(layout: Layout, plots: dict[str, Plot]) -> Drawn:
    folder, table = layout.reports("evaluate"), read_main_table(layout)
    history, positions, orders = (
        read_csv(folder / f"{name}.csv") for name in ("history", "positions", "orders")
    )
    styles, shown = model_styles(table), contrasting(set(positions["model"]), table)
    runs = (
        table[table["model"].isin(history["run"])]
        .sort_values("val_bits", kind="stable")["model"]
        .head(MAX_RUNS)
    )
    history = pd.concat([history[history["run"] == run] for run in runs] or [history])
    kinds = [token_kind(token).noun + "s, " for token in orders["token"]]
    yield "evaluate-highlights", highlights_figure(highlights(table))
    positions = pd.concat([smoothed(positions, model) for model in shown] or [positions])
    yield (
        "evaluate-positions",
        draw(positions, plots["reports/evaluate/positions.csv"], "model", styles=styles),
    )
    orders = orders.assign(kind=kinds + orders["smoothing"].str.title())
    yield "evaluate-orders", draw(orders, plots["reports/evaluate/orders.csv"], "kind")
    yield (
        "evaluate-learning",
        draw(history, plots["Perplexity of the runs"], styles=styles, panels="run", columns=2),
    )


def _of_ngrams(layout: Layout, plots: dict[str, Plot]) -> Drawn:
    names = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
    for kind, name, by in (
        ("word", "zipf", "n"),
        ("word", "growth", ""),
        ("char", "epsilons", "order"),
    ):
        table = read_csv(layout.reports("ngrams", kind, f"{name}.csv"))
        if by:
            shown = names if by == "n" else {}
            table[by] = [
                shown.get(n, f"order {n}" if by == "order" else f"{n}-grams") for n in table[by]
            ]
        yield f"ngrams-{kind}-{name}", draw(table, plots[f"reports/ngrams/{kind}/{name}.csv"], by)


def _of_sine(layout: Layout, plots: dict[str, Plot]) -> Drawn:
    table, plot = (
        read_csv(layout.reports("sine", "predictions.csv")),
        plots["Predictions of the sine"],
    )
    names = {"one_step": "one step ahead", "multi_step": "from its own earlier predictions"}
    ahead = {
        name: f"{name[6:]} steps ahead".replace("1 steps", "1 step")
        for name in table
        if name.startswith("ahead_")
    }
    for figure, columns in (("sine-steps", names), ("sine-ahead", ahead)):
        long = table.melt(["time", "observed"], list(columns), "panel", "prediction").replace(
            {"panel": columns}
        )
        one = Plot("time", ["prediction"], plot.x_label, plot.y_label)
        yield (
            figure,
            draw(long.rename(columns={"observed": "data"}), one, panels="panel", reference="data"),
        )
    errors = read_csv(layout.reports("sine", "errors.csv"))
    yield "sine-errors", draw(errors, plots["reports/sine/errors.csv"], "network")


def _of_gradients(layout: Layout, plots: dict[str, Plot]) -> Drawn:
    tables = {
        name: read_csv(layout.reports("gradients", f"{name}.csv"))
        for name in ("reach", "truncation", "trained")
    }
    # A curve ends where it leaves the scale; and so small a bias comes from drawing alone.
    tables["reach"] = tables["reach"][tables["reach"]["norm"] >= _LEAST_NORM].replace(
        {"model": _STUDIED}
    )
    truncation = tables["truncation"]
    tables["truncation"] = truncation.assign(
        bias=truncation["bias"].where(truncation["bias"] > 2 * truncation["standard_error"])
    )
    yield (
        "gradients-reach",
        draw(tables["reach"], plots["reports/gradients/reach.csv"], "model", panels="moment"),
    )
    yield (
        "gradients-truncation",
        draw(tables["truncation"], plots["Truncated gradients"], "strategy"),
    )
    radius = read_csv(layout.reports("gradients", "radius.csv")).replace({"model": _STUDIED})
    yield "gradients-radius", draw(radius, plots["reports/gradients/radius.csv"], "model")
    yield (
        "gradients-trained",
        draw(tables["trained"], plots["reports/gradients/trained.csv"], "strategy"),
    )


def _of_curves(layout: Layout, _: dict[str, Plot]) -> Drawn:
    if read_json(layout.corpus_record)["name"] not in CORPORA:
        return
    test, val = "bits per character on test", "bits per character on val"
    plots = {
        "data": Plot("train_chars", ["test_bits"], "characters of training text", test, "logx"),
        "time": Plot("seconds", ["val_bits"], "processor seconds of training", val, "logx"),
    }
    for name, plot in plots.items():
        table = read_csv(layout.benchmark(f"curves_{name}.csv")).replace({"model": _CURVES})
        yield f"curves-{name}", draw(table, plot, "model", panels="corpus")
