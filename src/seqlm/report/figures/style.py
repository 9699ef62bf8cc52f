"""The look that all figures share, the fonts and shapes they use, and their deterministic way to disk.

Figures have no background, and their text and axes take the colour of the text around them (``currentColor``), so that
one file serves a light page and a dark one. Lines use the palette of Okabe and Ito, which colour-blind people can tell
apart; its blue is a little lighter here, so that it stands out as well from dark paper as from light.

In an SVG file, text stays text and a browser chooses its own fonts. But matplotlib measures text with the fonts chosen
here from those that are installed, and shows a character that no font has as a box."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import matplotlib as mpl
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontProperties, findfont, findSystemFonts, fontManager, get_font
from matplotlib.patches import FancyBboxPatch

USUAL = "sans-serif"
"""The family of all figures: it comes first, and alone if it has all characters."""
MISSING_GLYPH = "\u00b7"
"""Drawn for a character that no font has."""
_PLACEHOLDER_FONTS = ("lastresort", "adobeblank", "fallback")
"""Parts of the names of fonts that show a box for every character."""
_USUAL_WEIGHTS = (400, "normal", "regular")


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


Pair = tuple[float, float]

_SPACE, _MARKS = "\u2423", {"\n": "\u21b5", "\t": "\u21e5"}


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
