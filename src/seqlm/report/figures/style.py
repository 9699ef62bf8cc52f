"""The look that all figures share, and their deterministic way to disk.

Figures have no background, and their text and axes take the colour of the text around
them (``currentColor``), so that one file serves a light page and a dark one. Lines use
the palette of Okabe and Ito, which colour-blind people can tell apart; its blue is a
little lighter here, so that it stands out as well from dark paper as from light.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from seqlm.report.figures.fonts import families_for

_TEXT = "#010203"
"""Stands for the colour of the surrounding text until the file is written."""

PALETTE = ("#1f83bd", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d")
GREY = "#808080"

_FIXED = {
    "lstm": "#d55e00",
    "scratch-sequential": "#1f83bd",
    "scratch-random": "#56b4e9",
    "concise-sequential": "#009e73",
    "concise-random": "#e69f00",
}
_NGRAM_COLOURS = {"uniform": GREY, "laplace": "#a6761d", "kneser-ney": "#8c6bb1"}

_LOOK = {
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


def colour_of(model: str) -> str:
    """Return the colour of a model, the same in every figure; any name has one."""
    base, _, extras = model.partition("+")
    if extras:
        # What is made of a run keeps the run's colour.
        return colour_of(base)
    if model in _FIXED:
        return _FIXED[model]
    for part, colour in _NGRAM_COLOURS.items():
        if part in model:
            return colour
    return PALETTE[hashlib.sha256(model.encode()).digest()[0] % len(PALETTE)]


@contextmanager
def look(text: str = "") -> Iterator[None]:
    """Apply the shared look to what is drawn inside, with fonts for a text that is drawn."""
    with mpl.rc_context(_LOOK | {"font.family": families_for(text)}):  # type: ignore[arg-type]
        yield


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 7.2, height: float = 3.6) -> tuple[Figure, Any]:
    """Return a figure of ``rows`` by ``columns`` axes, sizes in inches, without pyplot's global state.

    Call it and draw inside :func:`look`.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG; equal figures give equal text."""
    buffer = io.StringIO()
    with look():
        # Not `figure.savefig`, which draws a figure once before it draws it, for what formats other than SVG need.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    lines = buffer.getvalue().replace(_TEXT, "currentColor").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def legend_above(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of ``axes`` over all panels of ``figure``, where it hides no curve."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=8)
