"""The look that all figures share, and their deterministic way to disk.

A figure is as wide as a column of the page on a phone, where its text is still 10 pixels high; on a wide screen two
figures stand side by side. Figures have no background, and their text and axes take the colour of the text around
them (``currentColor``), so that one file serves a light page and a dark one.

A colour means one kind of model (:func:`model_styles`). What is no model is drawn in :data:`SERIES`. Every colour has
a contrast of at least 3:1 with light and with dark paper, and line styles and markers repeat what colours say.

In an SVG file, text stays text and a browser chooses its own fonts. But matplotlib measures text with the fonts chosen
here from those that are installed, and shows a character that no font has as a box.
"""

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontProperties, findfont, findSystemFonts, fontManager, get_font
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter, LogFormatter, LogFormatterSciNotation

USUAL = "sans-serif"
"""The family of all figures: it comes first, and alone if it has all characters."""
MISSING_GLYPH = "\u00b7"
"""Drawn for a character that no font has."""
_PLACEHOLDER_FONTS = ("lastresort", "adobeblank", "fallback")
"""Parts of the names of fonts that show a box for every character."""
_USUAL_WEIGHTS = (400, "normal", "regular")

INK = "#010203"
"""Replaced by the colour of the surrounding text when the file is written."""
GREY, MAGENTA, PURPLE, OCHRE, BLUE, GREEN, VERMILION = (
    "#808080", "#c2528b", "#8c6bb1", "#a6761d", "#1f83bd", "#009e73", "#d55e00"
)  # fmt: skip
NGRAM_COLOUR = GREEN
_NETWORKS = {"scratch": ("RNN", BLUE), "rnn": ("RNN", BLUE), "lstm": ("LSTM", VERMILION), "gru": ("GRU", OCHRE)}
"""Kind of network -> its name in legends and its colour."""
_LINES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "v", "P", "X")

WIDTH = 4.8
"""Inches."""
Pair = tuple[float, float]
_SPACE, _MARKS = "\u2423", {"\n": "\u21b5", "\t": "\u21e5"}
_USUAL_FONT = "font-size: 10px; font-family: 'DejaVu Sans', 'Verdana', 'Arial', sans-serif; "
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")

_RC_PARAMS = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10,
    "grid.alpha": 0.35,
    "grid.color": GREY,
    "grid.linewidth": 0.5,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "seqlm",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn and what marks its points."""

    color: str
    linestyle: str = "-"
    marker: str = "o"

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of ``Axes.plot`` for a line without markers."""
        return {"color": self.color, "linestyle": self.linestyle}

    @property
    def points(self) -> dict[str, Any]:
        """Arguments of ``Axes.plot`` for a line with markers."""
        return self.line | {"marker": self.marker}


SERIES = tuple(
    LineStyle(color, line, marker)
    for color, line, marker in zip((INK, MAGENTA, GREY) * 2, ("-", "--", "-.", ":", "-", "--"), _MARKERS, strict=True)
)
"""Styles of series that are no models: first, second, and so on."""


def model_styles(table: pd.DataFrame) -> dict[str, LineStyle]:
    """Return the style of each model in the main table, the same in every figure.

    The colour is that of its kind; models of one colour have different lines and markers.
    """
    styles: dict[str, LineStyle] = {}
    used: dict[str, int] = {}
    for row in table.to_dict("records"):
        _, colour = name_and_colour(row)
        place = used[colour] = used.get(colour, -1) + 1
        styles[str(row["model"])] = LineStyle(colour, _LINES[place % len(_LINES)], _MARKERS[place % len(_MARKERS)])
    return styles


def name_and_colour(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what kind of model a row of the main table is, as legends name it, and the colour of this kind."""
    if row["family"] == "mixture":
        return "mixture", PURPLE
    if row["family"] == "network":
        return _NETWORKS.get(row["network"], (str(row["network"]), MAGENTA))
    return ("n-gram model", NGRAM_COLOUR) if row["order"] > 0 else ("uniform", GREY)


@contextmanager
def style(text: str = "") -> Iterator[None]:
    """Apply the shared look to what is drawn inside, with fonts for a text that is drawn."""
    with mpl.rc_context(_RC_PARAMS | {"font.family": families_for(text)}):  # type: ignore[arg-type]
        yield


def new_figure(panels: int = 1, *, height: float = 3.2) -> tuple[Figure, Any]:
    """Return a figure and its panels, one below the other; ``height`` in inches is that of the whole.

    Call it and draw inside :func:`style`.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(panels, 1)


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG; equal figures give equal text."""
    for axes in figure.axes:
        _name_powers(axes)
    buffer = io.StringIO()
    with style():
        # Not `figure.savefig`, which draws a figure once before it draws it, for what formats other than SVG need.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    return _compact(buffer.getvalue().replace(INK, "currentColor"))


def _compact(svg: str) -> str:
    """Return an SVG with a hundredth of a point as the smallest step, and without comments and indentation."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _rounded, tag[0]), svg)
    # Most text shares one font, and tick marks have their look where they are defined.
    svg = re.sub(_USUAL_FONT, "", svg).replace(
        "</style>", "text{font: 10px 'DejaVu Sans', Verdana, Arial, sans-serif}</style>"
    )
    svg = re.sub(r'(<use [^>]*?) style="fill: currentColor; stroke: currentColor; stroke-width: 0.[68]"', r"\1", svg)
    # Only paths are referred to by their ids; groups have names such as line2d_1.
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    svg = re.sub(r'transform="rotate\(-?0 [^"]*"', "", svg)
    return "\n".join(line for line in map(str.strip, svg.split("\n")) if line) + "\n"


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _name_powers(axes: Axes) -> None:
    """Write the ticks of logarithmic scales without small exponents, unless a figure has named them itself."""
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
            if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
                axis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))


def _power(value: float) -> str:
    """Return a power of ten: as a number if that is short."""
    if 1e-3 <= value < 1e5:
        return f"{value:,g}"
    return "10" + str(round(math.log10(value))).translate(_SUPERSCRIPTS)


def legend_above(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of ``axes`` over all panels of ``figure``, where it hides no curve."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def visible(text: str) -> str:
    """Return ``text`` as it can be drawn: a lone space or line end as a mark, a dot for what no font here has."""
    if text.isspace():
        return _MARKS.get(text, _SPACE)
    missing = without_font(text)
    return "".join(MISSING_GLYPH if c in missing or not c.isprintable() else c for c in text)


def box(axes: Axes, at: Pair, text: str, colour: str, *, half: Pair, style: str, **text_style: Any) -> None:
    """Draw a box around ``at`` with ``text`` in it; ``half`` is half its width and height, ``style`` matplotlib's."""
    (x, y), (half_width, half_height) = at, half
    corner, size = (x - half_width, y - half_height), (2 * half_width, 2 * half_height)
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, edgecolor=colour, facecolor="none"))
    axes.text(x, y, text, ha="center", va="center", **text_style)


def arrow(axes: Axes, start: Pair, end: Pair) -> None:
    """Draw a grey arrow."""
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": GREY})


def without_axes(axes: Axes, x_limits: Pair, y_limits: Pair) -> None:
    """Show this part of the plane, without axes."""
    axes.set(xlim=x_limits, ylim=y_limits)
    axes.axis("off")


class InstalledFonts:
    """The installed fonts, and which of them have the characters of a text."""

    def __init__(self, find_fonts: Callable[[], Iterable[str]] = findSystemFonts) -> None:
        """Remember how to find font files; nothing is searched before a text needs it."""
        self._find_fonts = find_fonts
        self._chosen: dict[frozenset[str], tuple[list[str], frozenset[str]]] = {}

    def choose(self, text: str) -> tuple[list[str], frozenset[str]]:
        """Return the families that together have the characters of a text, and the characters that no font has."""
        characters = frozenset(character for character in text if character.isprintable())
        if characters not in self._chosen:
            self._chosen[characters] = self._choose(characters)
        return self._chosen[characters]

    def _choose(self, characters: frozenset[str]) -> tuple[list[str], frozenset[str]]:
        families, missing = [USUAL], _missing(findfont(FontProperties(family=[USUAL])), characters)
        candidates = self._paths if missing else {}
        while candidates and missing:
            left = {family: _missing(path, missing) for family, path in candidates.items()}
            # The font that has most of them; of several such fonts, the first by name.
            best = min(left, key=lambda family: (len(left[family]), family))
            if left[best] == missing:
                break
            families.append(best)
            missing = left[best]
        return families, missing

    @cached_property
    def _paths(self) -> dict[str, str]:
        """The plainest file of each family: upright and of usual weight, if there is one."""
        # Matplotlib keeps a list of fonts from its first use: add the fonts that were installed since then.
        for path in sorted(set(self._find_fonts()) - {entry.fname for entry in fontManager.ttflist}):
            with suppress(Exception):  # a broken font can fail in any way; matplotlib skips it too
                fontManager.addfont(path)
        plainest: dict[str, FontEntry] = {}
        for entry in sorted(fontManager.ttflist, key=_plainness):
            if not any(part in entry.name.lower().replace(" ", "") for part in _PLACEHOLDER_FONTS):
                plainest.setdefault(entry.name, entry)
        # Matplotlib warns about a family without the usual weight, so add its plainest file under that weight too.
        for entry in plainest.values():
            if entry.weight not in _USUAL_WEIGHTS:
                fontManager.ttflist.append(replace(entry, weight="normal"))
        return {name: entry.fname for name, entry in plainest.items()}


FONTS = InstalledFonts()


def families_for(text: str) -> list[str]:
    """Return the families that together have the characters of a text, as far as any installed font has them."""
    return list(FONTS.choose(text)[0])


def without_font(text: str) -> str:
    """Return the characters of a text that no installed font has, each once and sorted."""
    return "".join(sorted(FONTS.choose(text)[1]))


def _plainness(entry: FontEntry) -> tuple[Any, ...]:
    return entry.style != "normal", entry.weight not in _USUAL_WEIGHTS, entry.fname


def _missing(path: str, characters: Iterable[str]) -> frozenset[str]:
    """Return the characters that a font has no glyph for; all, if it cannot be drawn at any size."""
    try:
        font = get_font(path)
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or broken
        return frozenset(characters)
    if not font.scalable:
        return frozenset(characters)
    return frozenset(character for character in characters if not font.get_char_index(ord(character)))
