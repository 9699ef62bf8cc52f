"""Figures that set models against each other."""

import pandas as pd
from matplotlib.figure import Figure

from seqlm.figures.style import GREY, colour_of, look, new_figure

_ROW_HEIGHT = 0.27


def comparison_figure(table: pd.DataFrame) -> Figure:
    """Draw each model's bits per character on the text it was fitted to and on test, best on top.

    ``table`` has the columns model, fitted_bits, test_bits, low, high, sorted by test_bits;
    a filled dot is test with its interval, a hollow one what the model was fitted to. The
    distance between the two is what the model remembers and cannot use.
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
            axes.plot(row["test_bits"], place, "o", color=colour, markersize=5)
        axes.plot([], [], "o", color=GREY, label="test, with 95 % interval")
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="text the model was fitted to")
        axes.set_yticks(range(len(rows)), rows["model"], fontsize=8)
        axes.set(xlabel="bits per character (less is better)")
        axes.set_xlim(left=0)
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=2, fontsize=8)
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
        axes.legend(fontsize=8)
    return figure
