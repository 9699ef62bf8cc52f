"""Figures that set models, and the trainings of the runs, against each other."""

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import GREY, colour_of, legend_above, look, new_figure

_ROW_HEIGHT = 0.27
_ADAPTS = "D"
_SMOOTHED = 9
_FEW = 20


def comparison_figure(table: pd.DataFrame) -> Figure:
    """Draw each model's bits per character on the text it was fitted to and on test, best on top.

    ``table`` has the columns model, adapts, fitted_bits, test_bits, low, high, sorted by test_bits;
    a filled dot is test with its interval, a diamond in its place a model that learns on from
    test, a hollow dot what the model was fitted to. The distance between the two is what the
    model remembers and cannot use.
    """
    rows = table.dropna(subset=["test_bits"]).iloc[::-1].reset_index(drop=True)
    with look():
        figure, axes = new_figure(height=1.1 + _ROW_HEIGHT * len(rows))
        for place, row in rows.iterrows():
            colour = colour_of(row["model"])
            if pd.notna(row["fitted_bits"]):
                axes.plot([row["fitted_bits"], row["test_bits"]], [place, place], color=colour, linewidth=1, alpha=0.5)
                axes.plot(row["fitted_bits"], place, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=3.5, alpha=0.45)
            axes.plot(row["test_bits"], place, _ADAPTS if row["adapts"] else "o", color=colour, markersize=5)
        axes.plot([], [], "o", color=GREY, label="test, with 95 % interval")
        if rows["adapts"].any():
            axes.plot([], [], _ADAPTS, color=GREY, label="test, dynamic")
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="text the model was fitted to")
        axes.set_yticks(range(len(rows)), rows["model"], fontsize=8)
        axes.set(xlabel="bits per character (less is better)")
        axes.set_xlim(left=0)
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3, fontsize=8)
    return figure


def learning_figure(history: pd.DataFrame) -> Figure:
    """Draw perplexity against epoch for each run: lines on train, dots on val.

    ``history`` has the columns run, epoch, train_perplexity, val_perplexity.
    """
    with look():
        figure, axes = new_figure(height=3.8)
        for run, rows in history.groupby("run", sort=True):
            colour = colour_of(str(run))
            axes.plot(rows["epoch"], rows["train_perplexity"], color=colour, label=str(run), linewidth=1.2)
            looks = rows.dropna(subset=["val_perplexity"])
            axes.plot(looks["epoch"], looks["val_perplexity"], ".--", color=colour, linewidth=0.7, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="perplexity")
        axes.set_title("Learning curves: train (lines) and val (dots)")
        legend_above(figure, axes, 3)
    return figure


def clipping_figure(history: pd.DataFrame) -> Figure:
    """Draw the norm before clipping and the share of clipped steps; columns run, epoch, grad_norm, clipped_share."""
    with look():
        figure, (norms, shares) = new_figure(1, 2, height=3.4)
        for run, rows in history.groupby("run", sort=True):
            settings = {"color": colour_of(str(run)), "label": str(run), "linewidth": 1}
            norms.plot(rows["epoch"], rows["grad_norm"], **settings)
            shares.plot(rows["epoch"], rows["clipped_share"], **settings)
        norms.set(xscale="log", yscale="log", xlabel="epoch", title="mean norm before clipping")
        shares.set(xscale="log", xlabel="epoch", title="share of steps clipped", ylim=(-0.02, 1.02))
        legend_above(figure, norms, 3)
    return figure


def position_figure(positions: pd.DataFrame) -> Figure:
    """Draw perplexity against the number of tokens of context; columns model, position, perplexity."""
    with look():
        figure, axes = new_figure(height=3.6)
        for model, rows in positions.groupby("model", sort=False):
            # OtherLoad are averaged: single positions are noisy.
            smooth = rows["perplexity"].rolling(_SMOOTHED, center=True, min_periods=1).mean()
            smooth[rows["position"] <= _SMOOTHED] = rows["perplexity"]
            axes.plot(rows["position"], smooth, color=colour_of(str(model)), label=str(model), linewidth=1.3)
        axes.set(xscale="log", yscale="log", xlabel="tokens of context", ylabel="test perplexity")
        legend_above(figure, axes, 3)
    return figure


def class_figure(classes: pd.DataFrame) -> Figure:
    """Draw each model's mean surprisal by class of character; columns model, token_class, share, bits."""
    names = list(dict.fromkeys(classes["token_class"]))
    models = list(dict.fromkeys(classes["model"]))
    with look():
        figure, axes = new_figure(height=3.4)
        height = 0.8 / len(models)
        for place, model in enumerate(models):
            rows = classes[classes["model"] == model].set_index("token_class").reindex(names)
            middles = [row + (place - (len(models) - 1) / 2) * height for row in range(len(names))]
            axes.barh(middles, rows["bits"], height * 0.9, color=colour_of(model), label=model)
        shares = classes.drop_duplicates("token_class").set_index("token_class")["share"]
        axes.set_yticks(range(len(names)), [f"{name} ({shares[name]:.0%})" for name in names])
        axes.invert_yaxis()
        axes.set(xlabel="bits per character on test")
        legend_above(figure, axes, 3)
    return figure


def calibration_figure(table: pd.DataFrame) -> Figure:
    """Draw how often the likeliest token is right against its probability.

    Columns model, confidence, accuracy, tokens.
    """
    with look():
        figure, axes = new_figure(width=5.2, height=4.4)
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="as often as it says")
        # Bins of a few tokens say nothing.
        for model, rows in table[table["tokens"] >= _FEW].groupby("model", sort=False):
            colour = colour_of(str(model))
            axes.plot(rows["confidence"], rows["accuracy"], ".-", color=colour, label=str(model), linewidth=1.3)
        axes.set(xlabel="probability of the likeliest token", ylabel="share of times it is right")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        legend_above(figure, axes, 2)
    return figure
