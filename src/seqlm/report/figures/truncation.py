"""Figures of truncated backpropagation: what it does to gradients, what it costs, what it trains."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from seqlm.report.figures.style import GREY, PALETTE, legend_above, new_figure, style

_COLOURS = {"regular": PALETTE[0], "randomized": PALETTE[1], "full": GREY}


def truncation_figure(truncation: pd.DataFrame, convergence: pd.DataFrame) -> Figure:
    """Draw bias and spread against length, and how the mean over draws nears the full gradient.

    Columns as in the study. A bias below two standard errors is left out: so much comes
    from drawing alone. Bars are two standard errors.
    """
    with style():
        figure, (left, right) = new_figure(1, 2, height=3.4)
        for strategy, rows in truncation.groupby("strategy", sort=False):
            colour = _COLOURS[str(strategy)]
            spread = rows[rows["spread"] > 0]  # where every step is cut, no draw differs from another
            left.plot(spread["length"], spread["spread"], "o:", color=colour, label=f"{strategy}, spread", markersize=4)
            seen = rows[rows["bias"] > 2 * rows["standard_error"]]
            if not seen.empty:
                left.errorbar(
                    seen["length"], seen["bias"], 2 * seen["standard_error"], fmt="o-", color=colour, markersize=4,
                    capsize=2, label=f"{strategy}, bias",
                )  # fmt: skip
        left.set(xscale="log", yscale="log", xlabel="length (expected, if randomized)", title="one gradient")
        left.set_ylabel("share of the full gradient")
        _name_lengths(left, truncation)
        for strategy, rows in convergence.groupby("strategy", sort=False):
            colour = _COLOURS[str(strategy)]
            right.plot(rows["draws"], rows["distance"], color=colour, label=f"{strategy}, distance of the mean")
            right.plot(rows["draws"], rows["standard_error"], "--", color=colour, linewidth=0.9, alpha=0.8)
        right.set(
            xscale="log", yscale="log", xlabel="draws", title=f"mean of draws, length {truncation['length'].max()}"
        )
        right.yaxis.set_minor_formatter(NullFormatter())
        legend_above(figure, left, 3)
    return figure


def trained_figure(trained: pd.DataFrame) -> Figure:
    """Draw perplexity on val against length: dots are trainings, lines their means; columns as in the study."""
    with style():
        figure, axes = new_figure(height=3.2)
        for strategy, rows in trained.groupby("strategy", sort=False):
            colour = _COLOURS[str(strategy)]
            means = rows.groupby("length")["val_perplexity"].mean()
            axes.plot(rows["length"], rows["val_perplexity"], "o", color=colour, markersize=4, alpha=0.6)
            if strategy == "full":
                axes.axhline(means.iloc[0], color=colour, linestyle="--", linewidth=1, label="full, mean")
            else:
                axes.plot(means.index, means, color=colour, label=f"{strategy}, mean")
        axes.set(xscale="log", xlabel="length (expected, if randomized)", ylabel="perplexity on val")
        _name_lengths(axes, trained)
        legend_above(figure, axes, 3)
    return figure


def cost_figure(cost: pd.DataFrame) -> Figure:
    """Draw arithmetic and memory of one window against length; columns as in the study."""
    panels_of = {"megaflop": "million operations", "kilobytes": "stored kilobytes"}
    with style():
        figure, panels = new_figure(1, 2, height=3.0)
        for axes, (column, title) in zip(panels, panels_of.items(), strict=True):
            for strategy, rows in cost.groupby("strategy", sort=False):
                mark = "s" if strategy == "full" else "o-"
                axes.plot(rows["length"], rows[column], mark, color=_COLOURS[str(strategy)], label=str(strategy))
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
