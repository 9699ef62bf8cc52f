"""Figures that compare models and the training of runs."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import GREY, legend_above, new_figure, style

_ROW_HEIGHT = 0.27
_DYNAMIC_MARKER = "D"
_SMOOTHING_WINDOW = 9
_MIN_TOKENS = 20

Colours = Mapping[str, str]
"""Model -> its colour."""


def comparison_figure(table: pd.DataFrame, colours: Colours) -> Figure:
    """Draw each model's bits per character on the text it was trained on and on test, best on top.

    ``table`` is the main table, sorted by test_bits. A filled dot is test with its interval, or a diamond for a dynamic
    model; a hollow dot is the text that the model was trained on. The distance between the two is what the model
    remembers and cannot use on new text.
    """
    rows = table.dropna(subset=["test_bits"]).iloc[::-1].reset_index(drop=True)
    with style():
        figure, axes = new_figure(height=1.1 + _ROW_HEIGHT * len(rows))
        for place, row in rows.iterrows():
            colour = colours[row["model"]]
            if pd.notna(row["train_subset_bits"]):
                axes.plot(
                    [row["train_subset_bits"], row["test_bits"]], [place, place], color=colour, linewidth=1, alpha=0.5
                )
                axes.plot(row["train_subset_bits"], place, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=3.5, alpha=0.45)
            axes.plot(row["test_bits"], place, _DYNAMIC_MARKER if row["dynamic"] else "o", color=colour, markersize=5)
        axes.plot([], [], "o", color=GREY, label="test, with 95 % interval")
        if rows["dynamic"].any():
            axes.plot([], [], _DYNAMIC_MARKER, color=GREY, label="test, dynamic")
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="text the model was trained on")
        axes.set_yticks(range(len(rows)), rows["model"], fontsize=8)
        axes.set(xlabel="bits per character (lower is better)")
        axes.set_xlim(left=0)
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3, fontsize=8)
    return figure


def learning_figure(history: pd.DataFrame, colours: Colours) -> Figure:
    """Draw perplexity against epoch for each run: lines on train, dots on val.

    ``history`` has the columns run, epoch, train_perplexity, val_perplexity.
    """
    with style():
        figure, axes = new_figure(height=3.8)
        for run, rows in history.groupby("run", sort=True):
            colour = colours[str(run)]
            axes.plot(rows["epoch"], rows["train_perplexity"], color=colour, label=str(run), linewidth=1.2)
            evaluated = rows.dropna(subset=["val_perplexity"])
            axes.plot(evaluated["epoch"], evaluated["val_perplexity"], ".--", color=colour, linewidth=0.7, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="perplexity")
        axes.set_title("Learning curves: train (lines) and val (dots)")
        legend_above(figure, axes, 3)
    return figure


def clipping_figure(history: pd.DataFrame, colours: Colours) -> Figure:
    """Draw the norm before clipping and the share of clipped steps; columns run, epoch, grad_norm, clipped_share."""
    with style():
        figure, (norms, shares) = new_figure(1, 2, height=3.4)
        for run, rows in history.groupby("run", sort=True):
            settings = {"color": colours[str(run)], "label": str(run), "linewidth": 1}
            norms.plot(rows["epoch"], rows["grad_norm"], **settings)
            shares.plot(rows["epoch"], rows["clipped_share"], **settings)
        norms.set(xscale="log", yscale="log", xlabel="epoch", title="mean norm before clipping")
        shares.set(xscale="log", xlabel="epoch", title="share of steps clipped", ylim=(-0.02, 1.02))
        legend_above(figure, norms, 3)
    return figure


def position_figure(positions: pd.DataFrame, colours: Colours) -> Figure:
    """Draw perplexity against the number of tokens of context; columns model, position, perplexity."""
    with style():
        figure, axes = new_figure(height=3.6)
        for model, rows in positions.groupby("model", sort=False):
            # Neighbours are averaged because single positions are noisy.
            smooth = rows["perplexity"].rolling(_SMOOTHING_WINDOW, center=True, min_periods=1).mean()
            smooth[rows["position"] <= _SMOOTHING_WINDOW] = rows["perplexity"]
            axes.plot(rows["position"], smooth, color=colours[str(model)], label=str(model), linewidth=1.3)
        axes.set(xscale="log", yscale="log", xlabel="tokens of context", ylabel="test perplexity")
        legend_above(figure, axes, 3)
    return figure


def class_figure(classes: pd.DataFrame, colours: Colours) -> Figure:
    """Draw each model's mean surprisal by class of character; columns model, token_class, share, bits."""
    names = list(dict.fromkeys(classes["token_class"]))
    models = list(dict.fromkeys(classes["model"]))
    with style():
        figure, axes = new_figure(height=3.4)
        height = 0.8 / len(models)
        for place, model in enumerate(models):
            rows = classes[classes["model"] == model].set_index("token_class").reindex(names)
            middles = [row + (place - (len(models) - 1) / 2) * height for row in range(len(names))]
            axes.barh(middles, rows["bits"], height * 0.9, color=colours[model], label=model)
        shares = classes.drop_duplicates("token_class").set_index("token_class")["share"]
        axes.set_yticks(range(len(names)), [f"{name} ({shares[name]:.0%})" for name in names])
        axes.invert_yaxis()
        axes.set(xlabel="bits per character on test")
        legend_above(figure, axes, 3)
    return figure


def calibration_figure(table: pd.DataFrame, colours: Colours) -> Figure:
    """Draw how often the most likely token is right against its probability.

    Columns model, confidence, accuracy, tokens.
    """
    with style():
        figure, axes = new_figure(width=5.2, height=4.4)
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="as often as it says")
        # Bins with few tokens are too noisy.
        for model, rows in table[table["tokens"] >= _MIN_TOKENS].groupby("model", sort=False):
            colour = colours[str(model)]
            axes.plot(rows["confidence"], rows["accuracy"], ".-", color=colour, label=str(model), linewidth=1.3)
        axes.set(xlabel="probability of the likeliest token", ylabel="share of times it is right")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        legend_above(figure, axes, 2)
    return figure
