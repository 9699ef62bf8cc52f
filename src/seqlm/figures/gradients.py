"""Figures of section 8.7."""

import itertools

import pandas as pd
from matplotlib.figure import Figure

from seqlm.figures.style import GREY, PALETTE, colour_of, look, new_figure

_SHOWN = {" ": "\u2423", "\n": "\u21b5"}
_RANDOM_CUTS = (4, 6, 13, 14, 21)
_REGULAR_LENGTH = 6


def strategies_figure(text: str) -> Figure:
    """Draw how three strategies cut a text for backpropagation: randomized, regular, full (figure 8.7.1)."""
    rows = {
        "randomized": _RANDOM_CUTS,
        "regular": tuple(range(_REGULAR_LENGTH, len(text), _REGULAR_LENGTH)),
        "full": (),
    }
    with look():
        figure, axes = new_figure(height=2.0)
        for height, (name, cuts) in enumerate(rows.items()):
            axes.text(-1.2, -height, name, ha="right", va="center", fontsize=9)
            edges = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
            for index, (start, end) in enumerate(itertools.pairwise(edges)):
                colour = PALETTE[index % 2]
                axes.plot([start - 0.4, end - 0.6], [-height - 0.36] * 2, color=colour, linewidth=2)
                for place in range(start, end):
                    shown = _SHOWN.get(text[place], text[place])
                    axes.text(place, -height, shown, ha="center", va="center", color=colour)
        axes.set(xlim=(-5.5, len(text)), ylim=(-len(rows) + 0.4, 0.6))
        axes.axis("off")
    return figure


def reach_figure(reach: pd.DataFrame) -> Figure:
    """Draw the gradient's norm against k for each model, before training and after; columns as in the study."""
    with look():
        figure, panels = new_figure(1, 2, height=3.4)
        for axes, moment in zip(panels, ("initial", "trained"), strict=True):
            rows = reach[reach["moment"] == moment]
            for (model, curve), colour in zip(rows.groupby("model", sort=False), PALETTE, strict=False):
                # A curve ends where it leaves the scale: held at the floor it would look as if it went on.
                shown = curve["norm"].where(curve["norm"] >= 1e-12)
                axes.plot(curve["k"], shown, color=colour, label=str(model))
            axes.set(yscale="log", xlabel="k, steps back", title=f"{moment} weights")
        panels[0].set_ylabel("gradient, share of that at k = 0")
        panels[0].legend(fontsize=8)
    return figure


def truncation_figure(truncation: pd.DataFrame) -> Figure:
    """Draw bias and spread of truncated gradients against the length; columns strategy, length, bias, spread."""
    with look():
        figure, axes = new_figure(height=3.2)
        for (strategy, rows), colour in zip(truncation.groupby("strategy", sort=False), PALETTE, strict=False):
            axes.plot(rows["length"], rows["bias"], "o-", color=colour, label=f"{strategy}, bias")
            spread = rows[rows["spread"] > 0]  # where every step is cut, no draw differs from another
            axes.plot(spread["length"], spread["spread"], "o:", color=colour, label=f"{strategy}, spread")
        axes.set(xscale="log", yscale="log", xlabel="length (expected, if randomized)")
        axes.set_ylabel("share of the full gradient")
        axes.set_title("What truncation does to the gradient")
        axes.legend(fontsize=8)
    return figure


def information_figure(information: pd.DataFrame) -> Figure:
    """Draw mutual information against the distance between tokens; columns distance, bits."""
    with look():
        figure, axes = new_figure(height=3.0)
        positive = information[information["bits"] > 0]
        axes.plot(positive["distance"], positive["bits"], "o-", color=PALETTE[0], markersize=3)
        axes.set(xscale="log", yscale="log", xlabel="distance between tokens", ylabel="bits")
        axes.set_title("Mutual information between tokens")
    return figure


def alignment_figure(alignment: pd.DataFrame) -> Figure:
    """Draw how powers of a matrix turn a vector to the leading eigenvector; columns power, cosine."""
    with look():
        figure, axes = new_figure(height=2.8)
        axes.plot(alignment["power"], alignment["cosine"], color=PALETTE[0])
        axes.axhline(1, color=GREY, linestyle="--", linewidth=0.8)
        axes.set(xlabel="power of the matrix", ylabel="|cosine|", ylim=(0, 1.05))
        axes.set_title("Powers of a matrix align with its leading eigenvector")
    return figure


def clipping_figure(history: pd.DataFrame) -> Figure:
    """Draw the gradient's norm before clipping over training; columns run, epoch, grad_norm."""
    with look():
        figure, axes = new_figure(height=3.2)
        for run, rows in history.groupby("run", sort=True):
            axes.plot(rows["epoch"], rows["grad_norm"], color=colour_of(str(run)), label=str(run), linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="norm before clipping")
        axes.set_title("Gradients of the runs")
        axes.legend(fontsize=8)
    return figure
