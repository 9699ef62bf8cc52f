"""Figures of n-gram statistics and n-gram models."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from seqlm.figures.style import GREY, PALETTE, look, new_figure
from seqlm.ngrams.zipf import ZipfFit

_NAMES = {1: "unigram", 2: "bigram", 3: "trigram"}


def zipf_figure(ranks: pd.DataFrame, fits: dict[int, ZipfFit]) -> Figure:
    """Draw count against rank for each order, with the fitted lines over their range.

    ``ranks`` has the columns n, rank, count; ``fits`` maps n to its fit.
    """
    with look():
        figure, axes = new_figure()
        for (order, rows), colour in zip(ranks.groupby("n"), PALETTE, strict=False):
            fit = fits[int(str(order))]
            name = _NAMES.get(int(str(order)), f"{order}-gram")
            label = f"{name}: alpha = {fit.alpha_least_squares:.2f}"
            axes.plot(rows["rank"], rows["count"], color=colour, label=label)
            ends = np.array([1, fit.max_rank])
            line = np.exp(fit.intercept) * ends.astype(float) ** -fit.alpha_least_squares
            axes.plot(ends, line, color=colour, linestyle="--", linewidth=0.9)
        axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="count", title="Count against rank")
        axes.set_ylim(bottom=0.7)
        axes.legend()
    return figure


def growth_figure(growth: pd.DataFrame, beta: float) -> Figure:
    """Draw the number of distinct tokens against the length of the text; columns tokens, distinct."""
    with look():
        figure, axes = new_figure(height=3.2)
        axes.plot(growth["tokens"], growth["distinct"], color=PALETTE[0])
        axes.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="distinct tokens")
        axes.set_title(f"Vocabulary growth (Heaps' law, beta = {beta:.2f})")
    return figure


def epsilon_figure(curve: pd.DataFrame, chosen: dict[int, float]) -> Figure:
    """Draw val perplexity against epsilon for each order; columns order, epsilon, val_perplexity."""
    with look():
        figure, axes = new_figure(height=3.2)
        for (order, rows), colour in zip(curve.groupby("order"), PALETTE, strict=False):
            number = int(str(order))
            axes.plot(rows["epsilon"], rows["val_perplexity"], color=colour, label=f"order {number}")
            best = rows[rows["epsilon"] == chosen[number]]
            axes.plot(best["epsilon"], best["val_perplexity"], "o", color=colour)
        axes.set(xscale="log", yscale="log", xlabel="epsilon of the order", ylabel="perplexity on val")
        axes.set_title("Laplace smoothing: how much to add")
        axes.legend()
    return figure


def order_figure(scores: pd.DataFrame, networks: dict[str, float], colours: dict[str, str]) -> Figure:
    """Draw held-out bits per character against order, one line a smoothing, networks as level lines.

    ``scores`` has the columns smoothing, order, bits_per_character; ``networks`` maps a
    run to its bits per character.
    """
    with look():
        figure, axes = new_figure(height=3.8)
        for smoothing, rows in scores.groupby("smoothing"):
            axes.plot(rows["order"], rows["bits_per_character"], "o-", color=colours[str(smoothing)], label=smoothing)
        for name, bits in networks.items():
            axes.axhline(bits, color=colours.get(name, GREY), linestyle=":", linewidth=1.2, label=name)
        axes.set(xlabel="order of the n-gram model", ylabel="bits per character on test")
        axes.set_xticks(sorted(scores["order"].unique()))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    return figure
