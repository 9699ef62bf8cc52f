"""The look that all figures share, and their deterministic way to disk.

A figure is as wide as a column of the page on a phone, where its text is still 10 pixels high; on a
wide screen two figures are side by side. Figures have no background, and their text and axes take
the colour of the text around them (``currentColor``), so that one file serves a light page and a
dark one. As an ``<img>``, a figure does not know the text around it: then its own style has a light
colour for a dark page.

A colour means one kind of model (:func:`model_styles`). What is not a model is drawn in
:data:`SERIES`. Every colour has a contrast of at least 3:1 with light and with dark paper, and line
styles and markers repeat what colours say.

In an SVG file, text stays text, and the browser chooses fonts that have its characters.
"""

import io
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter, LogFormatterSciNotation

from seqlm.pipeline.evaluate.names import NETWORK_NAMES

INK = "#010203"
"""Replaced by the colour of the surrounding text when the file is written."""
GREY, MAGENTA, PURPLE, OLIVE, BLUE, GREEN, VERMILION = (
    "#808080",
    "#c2528b",
    "#8c6bb1",
    "#7d8500",
    "#1f83bd",
    "#009e73",
    "#d55e00",
)
_NETWORK_COLOURS = {"scratch": BLUE, "rnn": BLUE, "lstm": VERMILION, "gru": OLIVE}
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "P", "X")

WIDTH = 4.8
"""Inches."""
SVG_STYLE = (
    "svg{stroke-linejoin: round; stroke-linecap: butt; font: 10px 'DejaVu Sans', Verdana, Arial, "
    "sans-serif; "
    "color-scheme: light dark}\n@media (prefers-color-scheme: dark){svg{color: #e6edf3}}"
)
"""Of a figure as a file. The page leaves it out: ``page.css`` has the fonts and lines, the text
around the colour."""
_USUAL_FONT = "font-size: 10px; font-family: 'DejaVu Sans', 'Verdana', 'Arial', sans-serif; "
_OFFSET = 31e-6
"""Points. Coordinates come with six decimals."""
_NAME_LENGTH = 44
"""Characters in a line of a legend."""
_NAME_HEIGHT = 0.22
"""Inches."""
_SUPERSCRIPTS = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)

_LOOK = Path(__file__).parents[1] / "templates" / "figures.mplstyle"
"""Settings of Matplotlib; also its defaults, where a person's own settings might change how a
figure looks."""


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn and what marks its points."""

    color: str
    linestyle: str = "-"
    marker: str = "o"
    name: str = ""
    """The name that people read."""


_SERIES_LINES = ("-", "--", "-.", ":", "-", "--")
SERIES = tuple(map(LineStyle, (INK, MAGENTA, GREY) * 2, _SERIES_LINES, MARKERS))
"""Styles of series that are not models: first, second, and so on."""


def model_styles(table: pd.DataFrame) -> dict[str, LineStyle]:
    """Return the style of each model in the main table, the same in every figure.

    The colour is that of its kind; models of one colour have different lines and markers.
    """
    styles: dict[str, LineStyle] = {}
    used = Counter[str]()
    for row in table.to_dict("records"):
        _, colour = name_and_colour(row)
        look = LINES[used[colour] % len(LINES)], MARKERS[used[colour] % len(MARKERS)]
        styles[row["model"]] = LineStyle(colour, *look, row["label"])
        used[colour] += 1
    return styles


def name_and_colour(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what kind of model a row of the main table is, as legends name it, and the colour of
    this kind."""
    if row["family"] == "mixture":
        return "mixture", PURPLE
    if row["family"] == "network":
        network = str(row["network"])
        name = NETWORK_NAMES.get(network, network).removesuffix(" from scratch")
        return name, _NETWORK_COLOURS.get(network, MAGENTA)
    return ("n-gram model", GREEN) if row["order"] > 0 else ("guessing", GREY)


@contextmanager
def new_figure(
    panels: int = 1, *, height: float = 3.2, legend: int = 0, columns: int = 1
) -> Iterator[tuple[Figure, Any]]:
    """Give a figure and its panels, in this many columns, to draw in the shared look; ``height`` is
    without the legend.

    With a ``legend`` of this many columns, or of one if a name is long, that of the first panel is
    put over all panels, where it hides no curve. Panels share their limits, and only the outer ones
    have numbers.
    """
    with style.context(_LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield (
            figure,
            figure.subplots(math.ceil(panels / columns), columns, sharex=True, sharey=True),
        )
        handles, names = figure.axes[0].get_legend_handles_labels()
        if legend and handles:
            names = [textwrap.fill(name, _NAME_LENGTH) for name in names]
            legend = legend if max(map(len, names)) < _NAME_LENGTH / 2 else 1
            lines = sum(name.count("\n") + 1 for name in names)
            figure.set_figheight(height + _NAME_HEIGHT * math.ceil(lines / legend))
            figure.legend(handles, names, loc="outside upper center", ncols=legend)


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG; equal figures give equal text."""
    for axes in figure.axes:
        label_log_ticks(axes)
    buffer = io.StringIO()
    # A browser has fonts for characters that those of this machine lack.
    with style.context(_LOOK), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # Not `figure.savefig`, which draws a figure once before it draws it, for what formats other
        # than SVG need.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    return _compact(buffer.getvalue().replace(INK, "currentColor"))


def _compact(svg: str) -> str:
    """Return an SVG with a hundredth of a point as the smallest step, and without comments and
    indentation."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _rounded, tag[0]), svg)
    # Most text shares one font, and tick marks have their look where they are defined.
    svg = re.sub(r"(<style[^>]*>).*?(</style>)", rf"\1{SVG_STYLE}\2", svg)
    svg = re.sub(_USUAL_FONT, "", svg)
    svg = re.sub(
        r'(<use [^>]*?) style="fill: currentColor; stroke: currentColor; stroke-width: 0.[68]"',
        r"\1",
        svg,
    )
    # Attributes, which the policy of the page allows, instead of styles, which it does not.
    svg = re.sub(
        r' ?style="([^"]*)"',
        lambda style: re.sub(r"([a-z-]+): ([^;]*)(?:; ?|$)", r' \1="\2"', style[1]),
        svg,
    )
    # Only paths are referred to by their ids; groups have names such as line2d_1.
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    # Matplotlib's ids hash coordinates with all their digits, of which the last ones differ between
    # processors.
    ids = {
        name: f"i{number}"
        for number, name in enumerate(dict.fromkeys(re.findall(r' id="([^"]*)"', svg)))
    }
    svg = re.sub(
        r'(?<= id=")[^"]*|(?<=#)\w+(?=["\)])', lambda found: ids.get(found[0], found[0]), svg
    )
    svg = re.sub(r'transform="rotate\(-?0 [^"]*"', "", svg)
    return "\n".join(line for line in map(str.strip, svg.split("\n")) if line) + "\n"


def _rounded(number: re.Match[str]) -> str:
    # Many coordinates lie exactly between two hundredths, such as the middle of a line. The offset
    # moves them away from there, so that their last digits, which differ between processors, do not
    # decide.
    return f"{float(number[0]) + _OFFSET:.2f}".rstrip("0").rstrip(".")


def label_log_ticks(axes: Axes) -> None:
    """Write the ticks of logarithmic scales as numbers if all are short, else as powers of ten.

    Scales whose ticks a figure has named itself stay as they are.
    """
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            low, high = axis.get_view_interval()
            axis.set_major_formatter(
                FuncFormatter(_number if low > 1e-4 and high < 1e5 else _power_of_ten)
            )
            if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
                axis.set_minor_formatter(_MinorTicks(minor_thresholds=(1, 0.4)))


class _MinorTicks(LogFormatter):
    def _num_to_string(self, x: float, _low: float, _high: float) -> str:
        return f"{x:,g}"


def _number(value: float, _position: int) -> str:
    return f"{value:,g}"


def _power_of_ten(value: float, _position: int) -> str:
    """Return a power of ten with a raised exponent."""
    return "10" + str(round(math.log10(value))).translate(_SUPERSCRIPTS)
