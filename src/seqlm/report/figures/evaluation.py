"""Figures that compare models and the training of runs."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import (
    GREY,
    INK,
    LineStyle,
    legend_above,
    name_and_colour,
    new_figure,
    style,
)

_ROW_HEIGHT = 0.42
_DYNAMIC_MARKER = "D"
_SMOOTHING_WINDOW = 9
_MIN_TOKENS = 20
_MAX_POINTS = 200

Styles = Mapping[str, LineStyle]
"""Model -> how it is drawn."""


def highlights_figure(table: pd.DataFrame) -> Figure:
    """Draw the bits per character of a few models, best on top: see :func:`seqlm.report.findings.highlights`.

    A filled mark with its value is test, the bar around it its interval, a hollow mark the text that the model was
    trained on.
    """
    rows = table.iloc[::-1].reset_index(drop=True)
    with style():
        figure, axes = new_figure(height=1.1 + _ROW_HEIGHT * len(rows))
        for place, row in enumerate(rows.to_dict("records")):
            _, colour = name_and_colour(row)
            marker = _DYNAMIC_MARKER if row["dynamic"] else "o"
            if pd.notna(row["train_subset_bits"]):
                ends = [row["train_subset_bits"], row["test_bits"]]
                axes.plot(ends, [place, place], color=colour, linewidth=1, alpha=0.5)
                axes.plot(ends[0], place, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=5, alpha=0.45)
            axes.plot(row["test_bits"], place, marker, color=colour, markersize=6)
            axes.annotate(
                f"{row['test_bits']:.2f}", (max(row["test_bits"], row["high"]), place), xytext=(6, 0),
                textcoords="offset points", va="center", fontweight="bold",
            )  # fmt: skip
            axes.annotate(row["model"], (0, place), xytext=(3, 9), textcoords="offset points", va="center")
        for name, colour in dict(map(name_and_colour, table.to_dict("records"))).items():
            axes.plot([], [], "o", color=colour, label=name)
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="on its training text")
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.set(xlabel="bits per character on test (lower is better)", ylim=(-0.6, len(rows) - 0.3))
        axes.set_xlim(0, 1.1 * max(rows["test_bits"].max(), rows["high"].max()))
        legend_above(figure, axes, 3)
    return figure


def learning_figure(history: pd.DataFrame, styles: Styles) -> Figure:
    """Draw perplexity against epoch for each run: lines on train, markers on val.

    ``history`` has the columns run, epoch, train_perplexity, val_perplexity.
    """
    with style():
        figure, axes = new_figure(height=4.2)
        for run, rows in history.groupby("run", sort=True):
            look, shown = styles[str(run)], _thinned(rows)
            axes.plot(shown["epoch"], shown["train_perplexity"], **look.line, label=str(run), linewidth=1.2)
            val = _thinned(rows.dropna(subset=["val_perplexity"]), 40)
            axes.plot(val["epoch"], val["val_perplexity"], look.marker, color=look.color, markersize=3.5)
        axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="perplexity")
        legend_above(figure, axes, 2)
    return figure


def _thinned(rows: pd.DataFrame, most: int = _MAX_POINTS) -> pd.DataFrame:
    """Return at most about ``most`` rows, spaced evenly on a logarithmic scale, the first and last among them."""
    places = {round(len(rows) ** (index / (most - 1))) - 1 for index in range(most)}
    return rows.iloc[sorted(places)] if len(rows) else rows


def clipping_figure(history: pd.DataFrame, styles: Styles) -> Figure:
    """Draw the norm before clipping and the share of clipped steps; columns run, epoch, grad_norm, clipped_share."""
    with style():
        figure, (norms, shares) = new_figure(2, height=4.8)
        for run, rows in history.groupby("run", sort=True):
            look, shown = styles[str(run)], _thinned(rows)
            norms.plot(shown["epoch"], shown["grad_norm"], **look.line, label=str(run), linewidth=1)
            shares.plot(shown["epoch"], shown["clipped_share"], **look.line, linewidth=1)
        norms.set(xscale="log", yscale="log", title="Mean norm before clipping")
        shares.set(xscale="log", xlabel="epoch", title="Share of steps clipped", ylim=(-0.02, 1.02))
        legend_above(figure, norms, 2)
    return figure


def position_figure(positions: pd.DataFrame, styles: Styles) -> Figure:
    """Draw perplexity against the number of tokens of context; columns model, position, perplexity."""
    with style():
        figure, axes = new_figure(height=3.8)
        for model, rows in positions.groupby("model", sort=False):
            # Neighbours are averaged because single positions are noisy.
            smooth = rows["perplexity"].rolling(_SMOOTHING_WINDOW, center=True, min_periods=1).mean()
            smooth[rows["position"] <= _SMOOTHING_WINDOW] = rows["perplexity"]
            shown = _thinned(rows.assign(perplexity=smooth), 80)
            axes.plot(shown["position"], shown["perplexity"], **styles[str(model)].line, label=str(model))
        axes.set(xscale="log", yscale="log", xlabel="tokens of context", ylabel="perplexity on test")
        legend_above(figure, axes, 2)
    return figure


def class_figure(classes: pd.DataFrame, styles: Styles) -> Figure:
    """Draw each model's mean surprisal by class of character; columns model, token_class, share, bits."""
    names = list(dict.fromkeys(classes["token_class"]))
    shares = classes.drop_duplicates("token_class").set_index("token_class")["share"]
    with style():
        figure, axes = new_figure(height=1.4 + 0.5 * len(names))
        for model, rows in classes.groupby("model", sort=False):
            look, bits = styles[str(model)], rows.set_index("token_class")["bits"].reindex(names)
            axes.plot(bits, range(len(names)), look.marker, color=look.color, label=str(model), markersize=6)
        axes.set_yticks(range(len(names)), [f"{name} ({shares[name]:.0%})" for name in names])
        axes.invert_yaxis()
        axes.set(xlabel="bits per character on test")
        axes.set_xlim(left=0)
        legend_above(figure, axes, 2)
    return figure


def calibration_figure(table: pd.DataFrame, styles: Styles) -> Figure:
    """Draw how often the most likely token is right against its probability.

    Columns model, confidence, accuracy, tokens.
    """
    with style():
        figure, axes = new_figure(height=4.4)
        axes.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfect calibration")
        # Bins with few tokens are too noisy.
        for model, rows in table[table["tokens"] >= _MIN_TOKENS].groupby("model", sort=False):
            axes.plot(rows["confidence"], rows["accuracy"], **styles[str(model)].points, label=str(model))
        axes.set(xlabel="probability of the likeliest token", ylabel="how often it is right")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        legend_above(figure, axes, 2)
    return figure
