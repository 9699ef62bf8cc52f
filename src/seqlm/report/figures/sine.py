"""Figures of section 8.1."""

import itertools

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import GREY, PALETTE, legend_above, new_figure, style


def series_figure(frame: pd.DataFrame) -> Figure:
    """Draw the series itself; columns time, observed."""
    with style():
        figure, axes = new_figure(height=2.8)
        axes.plot(frame["time"], frame["observed"], color=PALETTE[0], linewidth=0.9)
        axes.set(xlabel="time", ylabel="x", title="A sine with noise")
    return figure


def predictions_figure(frame: pd.DataFrame, columns: dict[str, str], title: str) -> Figure:
    """Draw the observed values and several predictions against time.

    ``frame`` has the columns time, observed and those that ``columns`` maps to labels.
    """
    with style():
        figure, axes = new_figure(height=3.2)
        axes.plot(frame["time"], frame["observed"], color=GREY, linewidth=0.7, label="observed")
        for (column, label), colour in zip(columns.items(), itertools.cycle(PALETTE), strict=False):
            axes.plot(frame["time"], frame[column], color=colour, linewidth=1.3, label=label)
        axes.set(xlabel="time", ylabel="x", title=title)
        legend_above(figure, axes, len(columns) + 1)
    return figure


def error_figure(errors: pd.DataFrame, noise: float) -> Figure:
    """Draw the error against k for each network (columns network, k, rmse), with the noise as the floor."""
    with style():
        figure, axes = new_figure(height=3.2)
        for (network, rows), colour in zip(errors.groupby("network", sort=False), PALETTE, strict=False):
            axes.plot(rows["k"], rows["rmse"], color=colour, label=str(network))
        axes.axhline(noise, color=GREY, linestyle="--", linewidth=1, label="noise floor")
        axes.set(xlabel="k, steps ahead", ylabel="root mean squared error", title="Error of k-step predictions")
        axes.set_ylim(bottom=0)
        legend_above(figure, axes, errors["network"].nunique() + 1)
    return figure
