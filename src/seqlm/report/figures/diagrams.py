"""The book's drawings, made from the corpus at hand: figures 8.3.1, 8.4.2, 8.7.1 and 8.7.2."""

import itertools
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from seqlm.report.figures.style import BLUE, GREY, INK, MAGENTA, new_figure

_RANDOM_CUTS = (4, 6, 13, 14, 21)
_REGULAR_LENGTH = 6
_GRAPH_STEPS = 3
_RAIL_END = 0.55
"""How far before a step its arrows from the parameters begin."""
_SUBSCRIPTS = "\u2080\u2081\u2082\u2083"
_LONGEST_TOKEN = 7
_SPACE, _MARKS = "\u2423", {"\n": "\u21b5", "\t": "\u21e5"}
_NOT_PRINTABLE = "\u00b7"

Pair = tuple[float, float]


def partition_figure(text: str, num_steps: int = 5, num_offsets: int = 5) -> Figure:
    """Draw how offsets 0, 1, ... cut a text into subsequences of ``num_steps`` characters (figure 8.3.1)."""
    with new_figure(height=0.36 * num_offsets + 0.4) as (figure, axes):
        for offset in range(num_offsets):
            edges = range(offset, len(text) + 1, num_steps)
            _draw_row(axes, -offset, text, edges, 0.38)
            axes.text(-1.2, -offset, f"offset {offset}", ha="right", va="center")
        _without_axes(axes, (-5, len(text)), (-num_offsets + 0.4, 0.6))
    return figure


def unrolled_figure(text: str) -> Figure:
    """Draw a character RNN over the steps of a text: each target is the next character (figure 8.4.2)."""
    box: dict[str, Any] = {"half": (0.3, 0.24), "style": "round,pad=0.03"}
    rows = (("input", 0.0, INK, text[:-1]), ("target", 2.4, MAGENTA, text[1:]))
    with new_figure(height=2.4) as (figure, axes):
        for label, height, colour, characters in rows:
            axes.text(-1.0, height, label, ha="right", va="center")
            for step, character in enumerate(characters):
                _box(axes, (step, height), _visible(character), colour, **box)
        axes.text(-1.0, 1.2, "state", ha="right", va="center")
        for step in range(len(text) - 1):
            _box(axes, (step, 1.2), f"H{step + 1}", BLUE, **box)
            _arrow(axes, (step, 0.3), (step, 0.9))
            _arrow(axes, (step, 1.5), (step, 2.1))
            if step:
                _arrow(axes, (step - 0.65, 1.2), (step - 0.35, 1.2))
        _without_axes(axes, (-2.4, len(text) - 1.4), (-0.5, 2.9))
    return figure


def strategies_figure(text: str) -> Figure:
    """Draw how three strategies cut a text for backpropagation: randomized, regular, full (figure 8.7.1)."""
    rows = {
        "randomized": _RANDOM_CUTS,
        "regular": tuple(range(_REGULAR_LENGTH, len(text), _REGULAR_LENGTH)),
        "full": (),
    }
    with new_figure(height=1.7) as (figure, axes):
        for height, (name, cuts) in enumerate(rows.items()):
            edges = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
            axes.text(-1.2, -height, name, ha="right", va="center")
            _draw_row(axes, -height, text, edges, 0.36)
        _without_axes(axes, (-7, len(text)), (-len(rows) + 0.4, 0.6))
    return figure


def _draw_row(axes: Axes, y: float, text: str, edges: Sequence[int], depth: float) -> None:
    """Draw a text in a row, with a line at this depth under each piece between two edges; the rest of it is grey."""
    colours = [GREY] * len(text)
    for index, (start, end) in enumerate(itertools.pairwise(edges)):
        colours[start:end] = [(INK, MAGENTA)[index % 2]] * (end - start)
        axes.plot([start - 0.4, end - 0.6], [y - depth] * 2, color=colours[start], linewidth=2)
    for place, (character, colour) in enumerate(zip(text, colours, strict=True)):
        axes.text(place, y, _visible(character), ha="center", va="center", color=colour)


def graph_figure(tokens: Sequence[str]) -> Figure:
    """Draw what depends on what in an RNN over the first three of four tokens (figure 8.7.2).

    Round boxes are values of a step, square ones parameters, whose dotted lines run to
    every step; dots are operations. Each target is the next token, L the mean loss.
    """
    shown = [_shortened(token) for token in tokens]
    num_steps = min(_GRAPH_STEPS, len(tokens) - 1)
    with new_figure(height=4.6) as (figure, axes):
        for name, height in (("$W_{hx}$", 0.4), ("$W_{hh}$", 1.0), ("$W_{qh}$", 2.75)):
            _graph_box(axes, 0.2, height, name, GREY, half=0.32)
            axes.plot([0.54, 1.9 * num_steps - _RAIL_END], [height] * 2, ":", color=GREY, linewidth=1)
        for step in range(num_steps):
            _graph_step(axes, 1.9 * (step + 1), step + 1, shown[step], shown[step + 1])
            _arrow(axes, (1.9 * (step + 1), 5.55), (1.9 * (num_steps + 1) / 2, 6.1))
        _graph_box(axes, 0.2, 2.1, f"h{_SUBSCRIPTS[0]} = 0", BLUE, half=_half_width("0"))
        _graph_box(axes, 1.9 * (num_steps + 1) / 2, 6.35, "L", MAGENTA)
        _without_axes(axes, (-0.3, 1.9 * num_steps + 1.7), (-0.35, 6.65))
    return figure


def _graph_step(axes: Axes, x: float, t: int, token: str, target: str) -> None:
    """Draw one step of the graph above each other: x_t, h_t, o_t, L_t, and y_t beside the loss."""
    _graph_box(axes, x, 0, f"x{_SUBSCRIPTS[t]} = {token}", INK, half=_half_width(token))
    _graph_box(axes, x, 2.1, f"h{_SUBSCRIPTS[t]}", BLUE)
    _graph_box(axes, x, 3.75, f"o{_SUBSCRIPTS[t]}", INK)
    _graph_box(axes, x, 5.3, f"L{_SUBSCRIPTS[t]}", MAGENTA)
    _graph_box(axes, x + 0.95, 4.55, f"y{_SUBSCRIPTS[t]} = {target}", MAGENTA, half=_half_width(target))
    for operation, result in ((1.4, 1.85), (3.1, 3.5), (4.55, 5.05)):
        axes.plot(x, operation, "o", color=GREY, markersize=5)
        _arrow(axes, (x, operation), (x, result))
    for start, operation in ((0.25, 1.4), (2.35, 3.1), (4.0, 4.55)):
        _arrow(axes, (x, start), (x, operation))
    for rail, operation in ((0.4, 1.4), (1.0, 1.4), (2.75, 3.1)):
        _arrow(axes, (x - _RAIL_END, rail), (x, operation))
    _arrow(axes, (x + 0.92 - _half_width(target), 4.55), (x, 4.55))
    _arrow(axes, (x - 1.9 + (0.22 if t > 1 else 0.62), 2.1), (x, 1.4))


def _shortened(token: str) -> str:
    """Return a token as it fits a box; a dollar would begin a formula."""
    shown = _visible(token if len(token) <= _LONGEST_TOKEN else token[: _LONGEST_TOKEN - 1] + "\u2026")
    return shown.replace("$", r"\$")


def _half_width(token: str) -> float:
    """Return half the width of a box that holds a name and a token."""
    return 0.36 + 0.02 * len(token)


def _graph_box(axes: Axes, x: float, y: float, text: str, colour: str, half: float = 0.2) -> None:
    style = "square,pad=0.02" if colour == GREY else "round,pad=0.02"
    _box(axes, (x, y), text, colour, half=(half, 0.22), style=style)


def _box(axes: Axes, at: Pair, text: str, colour: str, *, half: Pair, style: str) -> None:
    """Draw a box around ``at`` with ``text`` in it; ``half`` is half its width and height, ``style`` matplotlib's."""
    (x, y), (half_width, half_height) = at, half
    corner, size = (x - half_width, y - half_height), (2 * half_width, 2 * half_height)
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, edgecolor=colour, facecolor="none"))
    axes.text(x, y, text, ha="center", va="center")


def _arrow(axes: Axes, start: Pair, end: Pair) -> None:
    """Draw a grey arrow, which ends before a dot."""
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": GREY, "shrinkB": 3.5})


def _without_axes(axes: Axes, x_limits: Pair, y_limits: Pair) -> None:
    """Show this part of the plane, without axes."""
    axes.set(xlim=x_limits, ylim=y_limits)
    axes.axis("off")


def _visible(text: str) -> str:
    """Return ``text`` as it can be drawn: a lone space or line end as a mark, a dot for what is not printable."""
    if text.isspace():
        return _MARKS.get(text, _SPACE)
    return "".join(c if c.isprintable() else _NOT_PRINTABLE for c in text)
