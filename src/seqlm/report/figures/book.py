"""Figures of section 8.1, and drawings of the book made from the corpus at hand: figures 8.3.1 and 8.4.2."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqlm.report.figures.style import (
    BLUE,
    GREY,
    INK,
    MAGENTA,
    SERIES,
    arrow,
    box,
    legend_above,
    new_figure,
    style,
    visible,
    without_axes,
)


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


def partition_figure(text: str, num_steps: int = 5, num_offsets: int = 5) -> Figure:
    """Draw how offsets 0, 1, ... cut a text into subsequences of ``num_steps`` characters (figure 8.3.1)."""
    with style(text):
        figure, axes = new_figure(height=0.36 * num_offsets + 0.4)
        for offset in range(num_offsets):
            for place, character in enumerate(text):
                index, within = divmod(place - offset, num_steps)
                whole = place >= offset and offset + (index + 1) * num_steps <= len(text)
                colour = (INK, MAGENTA)[index % 2] if whole else GREY
                axes.text(place, -offset, visible(character), ha="center", va="center", color=colour)
                if whole and within == 0:
                    ends = [place - 0.4, place + num_steps - 0.6]
                    axes.plot(ends, [-offset - 0.38] * 2, color=colour, linewidth=2)
            axes.text(-1.2, -offset, f"offset {offset}", ha="right", va="center")
        without_axes(axes, (-5, len(text)), (-num_offsets + 0.4, 0.6))
    return figure


def unrolled_figure(text: str) -> Figure:
    """Draw a character RNN over the steps of a text: each target is the next character (figure 8.4.2)."""
    rows = (("input", 0.0, INK, text[:-1]), ("target", 2.4, MAGENTA, text[1:]))
    with style(text):
        figure, axes = new_figure(height=2.4)
        for label, height, colour, characters in rows:
            axes.text(-1.0, height, label, ha="right", va="center")
            for step, character in enumerate(characters):
                _box(axes, step, height, visible(character), colour)
        axes.text(-1.0, 1.2, "state", ha="right", va="center")
        for step in range(len(text) - 1):
            _box(axes, step, 1.2, f"H{step + 1}", BLUE)
            arrow(axes, (step, 0.3), (step, 0.9))
            arrow(axes, (step, 1.5), (step, 2.1))
            if step:
                arrow(axes, (step - 0.65, 1.2), (step - 0.35, 1.2))
        without_axes(axes, (-2.4, len(text) - 1.4), (-0.5, 2.9))
    return figure


def _box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    box(axes, (x, y), text, colour, half=(0.3, 0.24), style="round,pad=0.03", color=colour)
