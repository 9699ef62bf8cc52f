"""Figures of lines, drawn from a description: which columns, which scales, which labels.

``plots:`` in ``dvc.yaml`` has the descriptions of the figures that DVC draws too.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from ruamel.yaml import YAML

from seqlm.pipeline.report.figures.style import GREY, INK, MAGENTA, SERIES, LineStyle, new_figure

_MAX_POINTS = 200
"""Of a line: more are not seen, and make the file large."""
_MAX_MARKS = 12
"""Points of a line that are marked, if it has no more."""
_TITLE_LENGTH = 56
"""Characters in a line of titles of panels."""
_COLUMN_LINES = ("-", "--", ":")

Styles = Mapping[Any, LineStyle]
"""Value of the column that groups a table -> how its line is drawn."""


@dataclass(frozen=True)
class Plot:
    """What a figure shows of a table; ``template`` names the scales: lines, logx, logy or
    loglog."""

    x: str
    y: Sequence[str]
    x_label: str
    y_label: str
    template: str = "lines"


def read_plots(path: Path) -> dict[str, Plot]:
    """Return the plots of a ``dvc.yaml`` by the file that they draw or, if they are no stage's, by
    their title."""
    pipeline = YAML(typ="safe", pure=True).load(path)
    entries = [(entry, [""]) for entry in pipeline["plots"]]
    for stage in pipeline["stages"].values():
        items = list(stage.get("foreach", [""]))
        entries += [(entry, items) for entry in stage.get("do", stage).get("plots", [])]
    plots: dict[str, Plot] = {}
    for entry, items in entries:
        for name, described in entry.items():
            if "x" in described:
                labels = (described[key] for key in ("x_label", "y_label", "template"))
                plot = Plot(described["x"], _columns(described["y"]), *labels)
                plots |= {name.replace("${item}", item): plot for item in items}
    return plots


def _columns(y: Any) -> list[str]:
    if isinstance(y, dict):  # the columns of a file
        (y,) = y.values()
    return [y] if isinstance(y, str) else y


def draw(
    table: pd.DataFrame,
    plot: Plot,
    group: str = "",
    *,
    styles: Styles | None = None,
    panels: str = "",
    columns: int = 1,
    reference: str = "",
) -> Figure:
    """Draw lines, one for each value of the column ``group``; several columns of y have different
    dashes.

    Each value of the column ``panels`` has a panel of its own, in this many ``columns``, and a
    legend is put over all. The column ``reference`` is drawn as a thin grey line. Where several
    rows have the same x, they are marks, and the line shows their means. What has no place on the
    scales is left out.
    """
    values = table[panels].unique() if panels else [""]
    names = table[group].unique() if group else [""]
    if styles is None:
        looks = zip(names, cycle(SERIES), strict=False)
        styles = {name: replace(style, name=str(name)) for name, style in looks}
    scales = {f"{axis}scale": "log" for axis in "xy" if plot.template in ("loglog", f"log{axis}")}
    height = 0.5 + (2.5 if len(values) == 1 else 1.9) * math.ceil(len(values) / columns)
    with new_figure(len(values), height=height, legend=2, columns=columns) as (figure, _):
        for axes, value in zip(figure.axes, values, strict=False):
            shown = table[table[panels] == value] if panels else table
            axes.set(**scales)
            if panels:
                title = styles[value].name if value in styles else str(value)
                axes.set_title(textwrap.fill(title, _TITLE_LENGTH // columns))
            if reference:
                look = {"color": GREY, "linewidth": 0.8, "label": reference}
                _draw_line(axes, shown, plot.x, reference, look)
            for name in names:
                rows = shown[shown[group] == name] if group else shown
                style = styles.get(
                    name if group else value, LineStyle(MAGENTA if reference else INK)
                )
                _draw_group(axes, rows, plot, style if group else replace(style, name=""))
        if len(plot.y) > 1:
            for column, line in zip(plot.y, _COLUMN_LINES, strict=False):
                label = column.removesuffix("_perplexity")
                figure.axes[0].plot([], [], line, color=INK, label=label)
        for axes in figure.axes[len(values) :]:
            axes.remove()
        for axes in figure.axes[-columns:]:  # the lowest of each column
            axes.set_xlabel(plot.x_label)
            axes.tick_params(labelbottom=True)
        figure.supylabel(plot.y_label, fontsize=10)
    return figure


def _draw_group(axes: Axes, rows: pd.DataFrame, plot: Plot, style: LineStyle) -> None:
    for column, line in zip(plot.y, _COLUMN_LINES, strict=False):
        look = {"color": style.color, "linestyle": line if len(plot.y) > 1 else style.linestyle}
        known = rows.dropna(subset=[column])
        means = known.groupby(plot.x, as_index=False)[column].mean()
        if len(means) < len(known):
            axes.plot(known[plot.x], known[column], style.marker, color=style.color)
        elif len(means) <= _MAX_MARKS:
            look["marker"] = style.marker
        look["label"] = style.name if column == plot.y[0] else ""
        _draw_line(axes, means, plot.x, column, look)


def _draw_line(axes: Axes, rows: pd.DataFrame, x: str, y: str, look: Mapping[str, Any]) -> None:
    """Draw a line through at most about 200 points, spaced evenly on its scale, the first and last
    among them."""
    rows = rows.dropna(subset=[y])
    for scale, column in ((axes.get_xscale(), x), (axes.get_yscale(), y)):
        if scale == "log":
            rows = rows[rows[column] > 0]
    indices = set(range(0, len(rows), math.ceil(len(rows) / (2 * _MAX_POINTS)) or 1))
    if axes.get_xscale() == "log" and len(rows):
        shares = np.arange(_MAX_POINTS) / (_MAX_POINTS - 1)
        indices = {round(len(rows) ** share) - 1 for share in shares.tolist()}
    rows = rows.iloc[sorted(indices)]
    axes.plot(rows[x], rows[y], **look)
