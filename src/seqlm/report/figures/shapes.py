"""What the drawings are made of: boxes, arrows, and characters that can be seen."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from seqlm.report.figures.fonts import MISSING_GLYPH, without_font
from seqlm.report.figures.style import GREY

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
