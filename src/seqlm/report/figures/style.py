"""The look that all figures share, and their deterministic way to disk.

Figures have no background, and their text and axes take the colour of the text around
them (``currentColor``), so that one file serves a light page and a dark one. Lines use
the palette of Okabe and Ito, which colour-blind people can tell apart; its blue is a
little lighter here, so that it stands out as well from dark paper as from light.
"""

import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from seqlm.report.figures.fonts import families_for

_TEXT = "#010203"
"""Stands for the colour of the surrounding text until the file is written."""

PALETTE = ("#1f83bd", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")
GREY = "#808080"

_NGRAM_COLOURS = ("#8c6bb1", "#a6761d", "#cc79a7", "#56b4e9")
_NETWORK_COLOURS = ("#d55e00", "#1f83bd", "#009e73", "#e69f00", "#56b4e9", "#cc79a7")

_RC_PARAMS = {
    "axes.edgecolor": _TEXT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _TEXT,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.facecolor": "none",
    "font.size": 10,
    "grid.alpha": 0.35,
    "grid.color": GREY,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "seqlm",
    "text.color": _TEXT,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
}


def model_colours(table: pd.DataFrame) -> dict[str, str]:
    """Return the colour of each model in the main table, the same in every figure.

    N-gram models share a colour by smoothing method. Each network has its own, in the order of the table; its dynamic
    version and the mixtures that it is the first member of share it.
    """
    colours: dict[str, str] = {}
    smoothings = [str(name) for name in dict.fromkeys(table.loc[table["order"] > 0, "smoothing"])]
    of_smoothing = dict(zip(smoothings, itertools.cycle(_NGRAM_COLOURS), strict=False))
    networks = itertools.cycle(_NETWORK_COLOURS)
    rows = table.to_dict("records")
    for row in rows:
        if row["family"] == "network" and not row["dynamic"]:
            colours[row["model"]] = next(networks)
        elif row["family"] == "ngram":
            colours[row["model"]] = of_smoothing.get(str(row["smoothing"]), GREY)
    first_member = {row["model"]: str(row["members"]).split()[0] for row in rows}
    for model in first_member:
        source = model
        while source not in colours:
            source = first_member[source]
        colours[model] = colours[source]
    return colours


@contextmanager
def style(text: str = "") -> Iterator[None]:
    """Apply the shared look to what is drawn inside, with fonts for a text that is drawn."""
    with mpl.rc_context(_RC_PARAMS | {"font.family": families_for(text)}):  # type: ignore[arg-type]
        yield


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 7.2, height: float = 3.6) -> tuple[Figure, Any]:
    """Return a figure of ``rows`` by ``columns`` axes, sizes in inches, without pyplot's global state.

    Call it and draw inside :func:`style`.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG; equal figures give equal text."""
    buffer = io.StringIO()
    with style():
        # Not `figure.savefig`, which draws a figure once before it draws it, for what formats other than SVG need.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    lines = buffer.getvalue().replace(_TEXT, "currentColor").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def legend_above(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of ``axes`` over all panels of ``figure``, where it hides no curve."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=8)
