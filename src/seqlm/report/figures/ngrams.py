"""Figures of n-gram statistics and n-gram models."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import PALETTE, new_figure, style

_NAMES = {1: "unigram", 2: "bigram", 3: "trigram"}


def zipf_figure(ranks: pd.DataFrame, fits: Mapping[int, Mapping[str, Any]]) -> Figure:
    """Draw count against rank for each order, with the fitted lines over their range.

    ``ranks`` has the columns n, rank, count; ``fits`` maps n to max_rank, alpha_least_squares
    and intercept, where n has enough distinct n-grams for a fit.
    """
    with style():
        figure, axes = new_figure()
        for (order, rows), colour in zip(ranks.groupby("n"), itertools.cycle(PALETTE), strict=False):
            name, fit = _NAMES.get(int(str(order)), f"{order}-gram"), fits.get(int(str(order)))
            label = name if fit is None else f"{name}: alpha = {fit['alpha_least_squares']:.2f}"
            axes.plot(rows["rank"], rows["count"], color=colour, label=label)
            if fit is not None:
                ends = (1, fit["max_rank"])
                line = [math.exp(fit["intercept"] - fit["alpha_least_squares"] * math.log(end)) for end in ends]
                axes.plot(ends, line, color=colour, linestyle="--", linewidth=0.9)
        axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="count", title="Count against rank")
        axes.set_ylim(bottom=0.7)
        axes.legend()
    return figure


def growth_figure(growth: pd.DataFrame, beta: float | None) -> Figure:
    """Draw the number of distinct tokens against the length of the text; columns tokens, distinct.

    ``beta`` is Heaps' exponent, None where there is none.
    """
    with style():
        figure, axes = new_figure(height=3.2)
        axes.plot(growth["tokens"], growth["distinct"], color=PALETTE[0])
        axes.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="distinct tokens")
        axes.set_title("Vocabulary growth" + ("" if beta is None else f" (Heaps' law, beta = {beta:.2f})"))
    return figure


def epsilon_figure(curve: pd.DataFrame) -> Figure:
    """Draw val perplexity against epsilon for each order, a dot on the best; columns order, epsilon, val_perplexity."""
    with style():
        figure, axes = new_figure(height=3.2)
        for (order, rows), colour in zip(curve.groupby("order"), itertools.cycle(PALETTE), strict=False):
            axes.plot(rows["epsilon"], rows["val_perplexity"], color=colour, label=f"order {order}")
            best = rows.sort_values("val_perplexity", kind="stable").head(1)
            axes.plot(best["epsilon"], best["val_perplexity"], "o", color=colour)
        axes.set(xscale="log", yscale="log", xlabel="epsilon of the order", ylabel="perplexity on val")
        axes.set_title("Laplace smoothing: how much to add")
        axes.legend()
    return figure


def order_figure(scores: pd.DataFrame, table: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """Draw bits per character on test against order, one line for each token and smoothing, and networks as levels.

    ``scores`` has the columns token, smoothing, order, bits_per_character; ``table`` is the main table.
    """
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    # Networks that are far worse than n-gram models would squeeze the curves together.
    networks = networks[networks["test_bits"] <= scores["bits_per_character"].max()]
    with style():
        figure, axes = new_figure(height=3.8)
        curves = scores.groupby(["token", "smoothing"])
        for ((token, smoothing), rows), colour in zip(curves, itertools.cycle(PALETTE), strict=False):
            axes.plot(rows["order"], rows["bits_per_character"], "o-", color=colour, label=f"{token} {smoothing}")
        for name, bits in zip(networks["model"], networks["test_bits"], strict=True):
            axes.axhline(bits, color=colours[name], linestyle=":", linewidth=1.2, label=name)
        axes.set(xlabel="order of the n-gram model", ylabel="bits per character on test")
        axes.set_xticks(sorted(scores["order"].unique()))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    return figure
