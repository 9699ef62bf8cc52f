"""Draws every figure of the page from the tables of the stages."""

from collections.abc import Collection, Iterator
from itertools import chain

import pandas as pd
from matplotlib.figure import Figure

from seqlm.core.files import read_csv, read_json, write_text
from seqlm.core.layout import Layout
from seqlm.core.progress import count_noun
from seqlm.pipeline.evaluate.names import NETWORK_NAMES
from seqlm.pipeline.report.figures.charts import highlights_figure
from seqlm.pipeline.report.figures.plots import Plot, draw, read_plots
from seqlm.pipeline.report.figures.style import model_styles, svg_text
from seqlm.pipeline.report.statements import chart_rows, read_main_table
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
_STUDIED = {"scratch": "RNN with tanh", "relu": "RNN with ReLU", "gru": "GRU", "lstm": "LSTM"}
_NGRAMS = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
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


def extreme_models(models: Collection[str], table: pd.DataFrame) -> list[str]:
    """At most three models, best first: the best of each family and the worst of all, on val."""
    rows = table[table["model"].isin(models)].sort_values("val_bits", kind="stable")
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
    folder, table = layout.reports("evaluate"), read_main_table(layout)
    yield "evaluate-highlights", highlights_figure(chart_rows(table))
    styles = model_styles(table)

    positions = read_csv(folder / "positions.csv")
    models = extreme_models(set(positions["model"]), table)
    smooth = pd.concat([smoothed(positions, model) for model in models] or [positions])
    plot = plots["reports/evaluate/positions.csv"]
    yield "evaluate-positions", draw(smooth, plot, "model", styles=styles)

    orders = read_csv(folder / "orders.csv")
    nouns = [f"{token_kind(token).noun}s, " for token in orders["token"]]
    orders = orders.assign(kind=nouns + orders["smoothing"].str.title())
    yield "evaluate-orders", draw(orders, plots["reports/evaluate/orders.csv"], "kind")

    history = read_csv(folder / "history.csv")
    trained = table[table["model"].isin(history["run"])].sort_values("val_bits", kind="stable")
    runs = trained["model"].head(MAX_RUNS)
    history = pd.concat([history[history["run"] == run] for run in runs] or [history])
    plot = plots["Perplexity of the runs"]
    yield "evaluate-learning", draw(history, plot, styles=styles, panels="run", columns=2)


def draw_ngrams(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``ngrams`` stage."""

    def figure(kind: str, name: str, group: str = "") -> Figure:
        table = read_csv(layout.reports("ngrams", kind, f"{name}.csv"))
        if group == "n":
            table["n"] = [_NGRAMS.get(n, f"{n}-grams") for n in table["n"]]
        elif group == "order":
            table["order"] = [f"order {order}" for order in table["order"]]
        return draw(table, plots[f"reports/ngrams/{kind}/{name}.csv"], group)

    yield "ngrams-word-zipf", figure("word", "zipf", "n")
    yield "ngrams-word-growth", figure("word", "growth")
    yield "ngrams-char-epsilons", figure("char", "epsilons", "order")


def draw_sine(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``sine`` stage."""
    table = read_csv(layout.reports("sine", "predictions.csv"))
    names = {"one_step": "one step ahead", "multi_step": "from its own earlier predictions"}
    ks = {name: int(name[6:]) for name in table if name.startswith("ahead_")}
    ahead = {name: f"{count_noun(k, 'step')} ahead" for name, k in ks.items()}
    labels = plots["Predictions of the sine"]
    plot = Plot("time", ["prediction"], labels.x_label, labels.y_label)
    for figure, columns in (("sine-steps", names), ("sine-ahead", ahead)):
        long = table.melt(["time", "observed"], list(columns), "panel", "prediction")
        long = long.replace({"panel": columns}).rename(columns={"observed": "data"})
        yield figure, draw(long, plot, panels="panel", reference="data")
    errors = read_csv(layout.reports("sine", "errors.csv"))
    yield "sine-errors", draw(errors, plots["reports/sine/errors.csv"], "network")


def draw_gradients(layout: Layout, plots: Plots) -> Figures:
    """Figures of the ``gradients`` stage."""

    def table(name: str) -> pd.DataFrame:
        rows = read_csv(layout.reports("gradients", f"{name}.csv"))
        return rows.replace({"model": _STUDIED}) if "model" in rows else rows

    reach = table("reach")
    reach = reach[reach["norm"] >= _LEAST_NORM]  # a curve ends where it leaves the scale
    plot = plots["reports/gradients/reach.csv"]
    yield "gradients-reach", draw(reach, plot, "model", panels="moment")

    truncation = table("truncation")
    is_biased = truncation["bias"] > 2 * truncation["standard_error"]  # not by chance alone
    truncation = truncation.assign(bias=truncation["bias"].where(is_biased))
    yield "gradients-truncation", draw(truncation, plots["Truncated gradients"], "strategy")

    plot = plots["reports/gradients/radius.csv"]
    yield "gradients-radius", draw(table("radius"), plot, "model")
    plot = plots["reports/gradients/trained.csv"]
    yield "gradients-trained", draw(table("trained"), plot, "strategy")


def draw_curves(layout: Layout, _: Plots) -> Figures:
    """Figures of benchmarks/curves.py, on the pages of its texts only."""
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
