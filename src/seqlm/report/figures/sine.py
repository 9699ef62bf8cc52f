"""Figures of section 8.1."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import GREY, SERIES, legend_above, new_figure, style


def predictions_figure(frame: pd.DataFrame, columns: dict[str, str]) -> Figure:
    """Draw the observed values (grey) and predictions against time, one panel for each kind of prediction.

    ``frame`` has the columns time, observed and those that ``columns`` maps to titles.
    """
    frame = frame.iloc[::2]  # the eye sees no difference, and the file is half as large
    with style():
        figure, panels = new_figure(len(columns), height=0.8 + 1.2 * len(columns))
        for axes, (column, label), look in zip(
            np.atleast_1d(panels), columns.items(), itertools.cycle(SERIES), strict=False
        ):
            axes.plot(frame["time"], frame["observed"], color=GREY, linewidth=0.6)
            axes.plot(frame["time"], frame[column], color=look.color, linewidth=1.1)
            axes.set_title(label, loc="left", fontsize=10)
        axes.set_xlabel("time")
    return figure


def error_figure(errors: pd.DataFrame, noise: float) -> Figure:
    """Draw the error against k for each network (columns network, k, rmse), with the noise as the floor."""
    with style():
        figure, axes = new_figure(height=3.2)
        for (network, rows), look in zip(errors.groupby("network", sort=False), itertools.cycle(SERIES), strict=False):
            axes.plot(rows["k"], rows["rmse"], **look.line, label=str(network))
        axes.axhline(noise, color=GREY, linestyle=":", linewidth=1.2, label="noise floor")
        axes.set(xlabel="k, steps ahead", ylabel="root mean squared error")
        axes.set_ylim(bottom=0)
        legend_above(figure, axes, 2)
    return figure
