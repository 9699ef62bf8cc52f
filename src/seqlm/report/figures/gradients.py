"""Figures of section 8.7: drawings of the book, gradients through time, truncation, and trainings without a clip."""

import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from seqlm.report.figures.style import (
    BLUE,
    GREY,
    INK,
    MAGENTA,
    OCHRE,
    SERIES,
    VERMILION,
    LineStyle,
    arrow,
    box,
    legend_above,
    new_figure,
    style,
    visible,
    without_axes,
)

_RANDOM_CUTS = (4, 6, 13, 14, 21)
_REGULAR_LENGTH = 6
_GRAPH_STEPS = 3
_SUBSCRIPTS = "\u2080\u2081\u2082\u2083"
_LONGEST_TOKEN = 7
_LEAST_SHARE = 1e-12
_HIGHEST = 1e100
"""Largest value that is drawn."""
_MODELS = {
    "scratch": LineStyle(BLUE, "-", "o"),
    "relu": LineStyle(BLUE, ":", "s"),
    "gru": LineStyle(OCHRE, "--", "^"),
    "lstm": LineStyle(VERMILION, "-.", "v"),
}
_STRATEGIES = {"regular": SERIES[0], "randomized": SERIES[1], "full": SERIES[2]}


def strategies_figure(text: str) -> Figure:
    """Draw how three strategies cut a text for backpropagation: randomized, regular, full (figure 8.7.1)."""
    rows = {
        "randomized": _RANDOM_CUTS,
        "regular": tuple(range(_REGULAR_LENGTH, len(text), _REGULAR_LENGTH)),
        "full": (),
    }
    with style(text):
        figure, axes = new_figure(height=1.7)
        for height, (name, cuts) in enumerate(rows.items()):
            axes.text(-1.2, -height, name, ha="right", va="center")
            edges = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
            for index, (start, end) in enumerate(itertools.pairwise(edges)):
                colour = (INK, MAGENTA)[index % 2]
                axes.plot([start - 0.4, end - 0.6], [-height - 0.36] * 2, color=colour, linewidth=2)
                for place in range(start, end):
                    axes.text(place, -height, visible(text[place]), ha="center", va="center", color=colour)
        without_axes(axes, (-7, len(text)), (-len(rows) + 0.4, 0.6))
    return figure


def graph_figure(tokens: Sequence[str]) -> Figure:
    """Draw what depends on what in an RNN over the first three of four tokens (figure 8.7.2).

    Round boxes are values of a step, square ones parameters, whose dotted lines run to
    every step; dots are operations. Each target is the next token, L the mean loss.
    """
    shown = [_shortened(token) for token in tokens]
    num_steps = min(_GRAPH_STEPS, len(tokens) - 1)
    with style("".join(shown)):
        figure, axes = new_figure(height=4.6)
        for name, height in (("$W_{hx}$", 0.4), ("$W_{hh}$", 1.0), ("$W_{qh}$", 2.75)):
            _box(axes, 0.2, height, name, GREY)
            axes.plot([0.42, 1.9 * num_steps - 0.3], [height] * 2, ":", color=GREY, linewidth=1)
        for step in range(num_steps):
            _graph_step(axes, 1.9 * (step + 1), step + 1, shown[step], shown[step + 1])
            arrow(axes, (1.9 * (step + 1), 5.55), (1.9 * (num_steps + 1) / 2, 6.1))
        _box(axes, 0.2, 2.1, f"h{_SUBSCRIPTS[0]} = 0", BLUE, half=_half_width("0"))
        _box(axes, 1.9 * (num_steps + 1) / 2, 6.35, "L", MAGENTA)
        without_axes(axes, (-0.3, 1.9 * num_steps + 1.7), (-0.35, 6.65))
    return figure


def _graph_step(axes: Axes, x: float, t: int, token: str, target: str) -> None:
    """Draw one step of the graph above each other: x_t, h_t, o_t, L_t, and y_t beside the loss."""
    _box(axes, x, 0, _named("x", t, token), INK, half=_half_width(token))
    _box(axes, x, 2.1, f"h{_SUBSCRIPTS[t]}", BLUE)
    _box(axes, x, 3.75, f"o{_SUBSCRIPTS[t]}", INK)
    _box(axes, x, 5.3, f"L{_SUBSCRIPTS[t]}", MAGENTA)
    _box(axes, x + 0.95, 4.55, _named("y", t, target), MAGENTA, half=_half_width(target))
    for operation, result in ((1.4, 1.85), (3.1, 3.5), (4.55, 5.05)):
        axes.plot(x, operation, "o", color=GREY, markersize=5)
        arrow(axes, (x, operation), (x, result))
    for start, operation in ((0.25, 1.4), (2.35, 3.1), (4.0, 4.55)):
        arrow(axes, (x, start), (x, operation))
    for rail, operation in ((0.4, 1.4), (1.0, 1.4), (2.75, 3.1)):
        arrow(axes, (x - 0.3, rail), (x, operation))
    arrow(axes, (x + 0.92 - _half_width(target), 4.55), (x, 4.55))
    arrow(axes, (x - 1.9 + (0.22 if t > 1 else 0.62), 2.1), (x, 1.4))


def reach_figure(reach: pd.DataFrame) -> Figure:
    """Draw the gradient's norm against k for each model, before training and after; columns as in the study."""
    with style():
        figure, panels = new_figure(2, height=5)
        for axes, moment in zip(panels, ("initial", "trained"), strict=True):
            _draw_reach(axes, reach[reach["moment"] == moment])
            axes.set(yscale="log", ylabel="relative to k = 0", title=f"Gradient, {moment} weights")
        panels[1].set_xlabel("k, steps back")
        legend_above(figure, panels[0], 4)
    return figure


def _draw_reach(axes: Axes, reach: pd.DataFrame) -> None:
    for model, curve in reach.groupby("model", sort=False):
        # A curve ends where it leaves the scale: held at the floor it would look as if it went on.
        shown = curve["norm"].where(curve["norm"] >= _LEAST_SHARE)
        axes.plot(curve["k"], shown, **_look(model).line, label=str(model))


def _look(model: object) -> LineStyle:
    return _MODELS.get(str(model), SERIES[2])


def spectrum_figure(spectrum: pd.DataFrame, radius: pd.DataFrame) -> Figure:
    """Draw singular values of W_hh and its spectral radius over training; columns as in the study."""
    models = list(radius["model"].unique())
    with style():
        figure, panels = new_figure(len(models) + 1, height=1.9 * (len(models) + 1))
        for axes, model in zip(panels, models, strict=False):
            groups = list(spectrum[spectrum["model"] == model].groupby("minibatch"))
            for place, (minibatch, curve) in enumerate(groups):
                # Later moments are drawn stronger.
                strength = 0.3 + 0.7 * place / max(len(groups) - 1, 1)
                line = _look(model).line | {"alpha": strength, "linestyle": "-"}
                axes.plot(curve["rank"], curve["singular_value"], **line, label=f"after {minibatch}")
            axes.set(xlabel="rank", title=f"Singular values, {model}")
            axes.set_ylim(bottom=0)
            axes.legend(loc="upper right")
        last = panels[-1]
        for model, rows in radius.groupby("model", sort=False):
            last.plot(rows["minibatch"], rows["spectral_radius"], **_look(model).points, label=str(model))
        last.axhline(1, color=GREY, linestyle="--", linewidth=0.8)
        last.set(xlabel="minibatches", title="Spectral radius")
        last.set_ylim(bottom=0)
        last.legend(loc="best")
    return figure


def information_figure(information: pd.DataFrame, reach: pd.DataFrame) -> Figure:
    """Draw mutual information above that of shuffled text, and beside it the reach of trained gradients.

    Columns distance, bits, shuffled_deviation; model, moment, k, norm. Hollow dots lie
    within three standard deviations of shuffled text, where there is nothing to see;
    values at or below zero have no place on the scale.
    """
    with style():
        figure, (bits, gradients) = new_figure(2, height=5.6)
        floor = 3 * information["shuffled_deviation"]
        seen = information["bits"].where(information["bits"] > floor)
        hidden = information["bits"].where((information["bits"] > 0) & (information["bits"] <= floor))
        settings: dict[str, Any] = {"color": INK, "markersize": 3.5}
        bits.plot(information["distance"], seen, "o-", **settings, label="above chance")
        bits.plot(information["distance"], hidden, "o", markerfacecolor="none", **settings, label="not above chance")
        bits.plot(information["distance"], floor, "--", color=GREY, linewidth=1, label="chance (3 standard deviations)")
        # Where all tokens are the same, nothing tells of anything, and zeros have no logarithm.
        scale = "log" if (information["bits"] > 0).any() else "linear"
        bits.set(xscale="log", yscale=scale, xlabel="distance between tokens")
        bits.set_title("Mutual information above chance, bits")
        _draw_reach(gradients, reach[(reach["moment"] == "trained") & (reach["k"] > 0)])
        gradients.set(xscale="log", yscale="log", xlabel="k, steps back", title="Gradient, trained weights")
        gradients.set_xlim(bits.get_xlim())
        bits.legend(loc="upper right")
        gradients.legend(loc="lower left")
    return figure


def alignment_figure(alignment: pd.DataFrame) -> Figure:
    """Draw how powers of a matrix turn a vector to the leading eigenvector; columns power, cosine."""
    with style():
        figure, axes = new_figure(height=2.8)
        axes.plot(alignment["power"], alignment["cosine"], color=INK)
        axes.axhline(1, color=GREY, linestyle="--", linewidth=0.8)
        axes.set(xlabel="power of the matrix", ylabel="|cosine|", ylim=(0, 1.05))
    return figure


def unclipped_figure(unclipped: pd.DataFrame) -> Figure:
    """Draw norm and perplexity of trainings with a clip and without; a cross is the last value before divergence.

    Columns activation, clip, minibatch, norm, perplexity; empty where not finite.
    """
    looks = {"tanh": SERIES[0], "relu": SERIES[1]}
    with style():
        figure, panels = new_figure(2, height=5)
        for (activation, clip), rows in unclipped.groupby(["activation", "clip"], sort=False):
            look = looks[str(activation)]
            line: dict[str, Any] = {"linestyle": ":", "linewidth": 2} if clip == "no clip" else {"linewidth": 1}
            diverged = pd.isna(rows["norm"].iloc[-1])
            for axes, column in zip(panels, ("norm", "perplexity"), strict=True):
                # Near the largest number there is, matplotlib finds no ticks.
                shown = rows.dropna(subset=[column])
                shown = shown.assign(**{column: shown[column].clip(upper=_HIGHEST)})
                axes.plot(shown["minibatch"], shown[column], color=look.color, label=f"{activation}, {clip}", **line)
                if diverged:
                    last = shown.iloc[-1:]
                    axes.plot(last["minibatch"], last[column], "x", color=look.color, markersize=8)
        for axes, title in zip(panels, ("Norm before clipping", "Perplexity of the minibatch"), strict=True):
            axes.set(xscale="log", yscale="log", xlabel="minibatch", title=title)
        legend_above(figure, panels[0], 2)
    return figure


def _shortened(token: str) -> str:
    """Return a token as it fits a box; a dollar would begin a formula."""
    shown = visible(token if len(token) <= _LONGEST_TOKEN else token[: _LONGEST_TOKEN - 1] + "\u2026")
    return shown.replace("$", r"\$")


def _named(name: str, step: int, token: str) -> str:
    """Return ``x_1 = token``."""
    return f"{name}{_SUBSCRIPTS[step]} = {token}"


def _half_width(token: str) -> float:
    """Return half the width of a box that holds a name and a token."""
    return 0.36 + 0.02 * len(token)


def _box(axes: Axes, x: float, y: float, text: str, colour: str, half: float = 0.2) -> None:
    style = "square,pad=0.02" if colour == GREY else "round,pad=0.02"
    box(axes, (x, y), text, colour, half=(half, 0.22), style=style)


def truncation_figure(truncation: pd.DataFrame, convergence: pd.DataFrame) -> Figure:
    """Draw bias and spread against length, and how the mean over draws nears the full gradient.

    Columns as in the study. A bias below two standard errors is left out: so much comes
    from drawing alone. Bars are two standard errors.
    """
    with style():
        figure, (left, right) = new_figure(2, height=6)
        for strategy, rows in truncation.groupby("strategy", sort=False):
            look = _STRATEGIES[str(strategy)]
            spread = rows[rows["spread"] > 0]  # where every step is cut, no draw differs from another
            left.plot(spread["length"], spread["spread"], "o:", color=look.color, label=f"{strategy}, spread")
            seen = rows[rows["bias"] > 2 * rows["standard_error"]]
            if not seen.empty:
                left.errorbar(
                    seen["length"], seen["bias"], 2 * seen["standard_error"], fmt="s-", color=look.color, markersize=4,
                    capsize=2, label=f"{strategy}, bias",
                )  # fmt: skip
        left.set(xscale="log", yscale="log", xlabel="length (expected, if randomized)", title="One gradient")
        left.set_ylabel("share of the full gradient")
        _name_lengths(left, truncation)
        for strategy, rows in convergence.groupby("strategy", sort=False):
            look = _STRATEGIES[str(strategy)]
            right.plot(rows["draws"], rows["distance"], color=look.color, label=f"{strategy}, distance of the mean")
            right.plot(rows["draws"], rows["standard_error"], ":", color=look.color, linewidth=1)
        right.set(
            xscale="log", yscale="log", xlabel="draws", title=f"Mean of draws, length {truncation['length'].max()}"
        )
        right.yaxis.set_minor_formatter(NullFormatter())
        legend_above(figure, left, 2)
    return figure


def trained_figure(trained: pd.DataFrame) -> Figure:
    """Draw perplexity on val against length: dots are trainings, lines their means; columns as in the study."""
    with style():
        figure, axes = new_figure(height=3.2)
        for strategy, rows in trained.groupby("strategy", sort=False):
            look = _STRATEGIES[str(strategy)]
            means = rows.groupby("length")["val_perplexity"].mean()
            axes.plot(rows["length"], rows["val_perplexity"], look.marker, color=look.color)
            if strategy == "full":
                axes.axhline(means.iloc[0], **look.line, label="full, mean")
            else:
                axes.plot(means.index, means, **look.points, label=f"{strategy}, mean")
        axes.set(xscale="log", xlabel="length (expected, if randomized)", ylabel="perplexity on val")
        _name_lengths(axes, trained)
        legend_above(figure, axes, 3)
    return figure


def cost_figure(cost: pd.DataFrame) -> Figure:
    """Draw arithmetic and memory of one window against length; columns as in the study."""
    panels_of = {"megaflop": "Million operations", "kilobytes": "Stored kilobytes"}
    with style():
        figure, panels = new_figure(2, height=4.8)
        for axes, (column, title) in zip(panels, panels_of.items(), strict=True):
            for strategy, rows in cost.groupby("strategy", sort=False):
                axes.plot(rows["length"], rows[column], **_STRATEGIES[str(strategy)].points, label=str(strategy))
            axes.set(
                xscale="log", xlabel="length (expected, if randomized)", title=title, ylim=(0, 1.1 * cost[column].max())
            )
            _name_lengths(axes, cost)
        legend_above(figure, panels[0], 3)
    return figure


def _name_lengths(axes: Axes, table: pd.DataFrame) -> None:
    lengths = sorted(table["length"].unique())
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
