"""Figures of n-gram statistics and n-gram models."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import INK, NGRAM_COLOUR, SERIES, LineStyle, legend_above, new_figure, style

_NAMES = {1: "unigram", 2: "bigram", 3: "trigram"}
_LINES, _MARKERS = ("-", "--", ":", "-."), ("o", "s", "^", "v")


def zipf_figure(ranks: pd.DataFrame, fits: Mapping[int, Mapping[str, Any]]) -> Figure:
    """Draw count against rank for each order, with the fitted lines over their range.

    ``ranks`` has the columns n, rank, count; ``fits`` maps n to max_rank, alpha_least_squares
    and intercept, where n has enough distinct n-grams for a fit.
    """
    with style():
        figure, axes = new_figure(height=3.6)
        for (order, rows), look in zip(ranks.groupby("n"), itertools.cycle(SERIES), strict=False):
            name, fit = _NAMES.get(int(str(order)), f"{order}-gram"), fits.get(int(str(order)))
            label = name if fit is None else f"{name}, slope {-fit['alpha_least_squares']:.2f}"
            axes.plot(rows["rank"], rows["count"], **look.line, label=label)
            if fit is not None:
                ends = (1, fit["max_rank"])
                line = [math.exp(fit["intercept"] - fit["alpha_least_squares"] * math.log(end)) for end in ends]
                axes.plot(ends, line, color=look.color, linewidth=0.7)
        axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="count")
        axes.set_ylim(bottom=0.7)
        axes.legend()
    return figure


def growth_figure(growth: pd.DataFrame, beta: float | None) -> Figure:
    """Draw the number of distinct tokens against the length of the text; columns tokens, distinct.

    ``beta`` is Heaps' exponent, None where there is none.
    """
    with style():
        figure, axes = new_figure(height=3.2)
        axes.plot(growth["tokens"], growth["distinct"], color=INK)
        axes.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="distinct tokens")
        if beta is not None:
            axes.set_title(f"Heaps' law: exponent {beta:.2f}")
    return figure


def epsilon_figure(curve: pd.DataFrame) -> Figure:
    """Draw val perplexity against epsilon for each order, a dot on the best; columns order, epsilon, val_perplexity."""
    with style():
        figure, axes = new_figure(height=3.2)
        for (order, rows), look in zip(curve.groupby("order"), itertools.cycle(SERIES), strict=False):
            axes.plot(rows["epsilon"], rows["val_perplexity"], **look.line, label=f"order {order}")
            best = rows.sort_values("val_perplexity", kind="stable").head(1)
            axes.plot(best["epsilon"], best["val_perplexity"], "o", color=look.color)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="perplexity on val")
        legend_above(figure, axes, 3)
    return figure


def order_figure(scores: pd.DataFrame, table: pd.DataFrame, styles: Mapping[str, LineStyle]) -> Figure:
    """Draw bits per character on test against order, one line for each token and smoothing, and networks as levels.

    ``scores`` has the columns token, smoothing, order, bits_per_character; ``table`` is the main table.
    """
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    # Networks that are far worse than n-gram models would squeeze the curves together.
    networks = networks[networks["test_bits"] <= scores["bits_per_character"].max()]
    lines = dict(zip(scores["smoothing"].unique(), itertools.cycle(_LINES), strict=False))
    markers = dict(zip(scores["token"].unique(), itertools.cycle(_MARKERS), strict=False))
    with style():
        figure, axes = new_figure(height=4.6)
        for (token, smoothing), rows in scores.groupby(["token", "smoothing"]):
            look = LineStyle(NGRAM_COLOUR, lines[smoothing], markers[token])
            axes.plot(rows["order"], rows["bits_per_character"], **look.points, label=f"{token} {smoothing}")
        for name, bits in zip(networks["model"], networks["test_bits"], strict=True):
            axes.axhline(bits, **styles[name].line, linewidth=1.2, label=name)
        axes.set(xlabel="order of the n-gram model", ylabel="bits per character on test")
        axes.set_xticks(sorted(scores["order"].unique()))
        legend_above(figure, axes, 2)
    return figure
