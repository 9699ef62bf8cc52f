"""The chart that no description of lines covers: the models of the first screen."""

import pandas as pd
from matplotlib.figure import Figure

from seqlm.pipeline.report.figures.style import GREY, name_and_colour, new_figure

_INTERVAL = {"linewidth": 2.5, "marker": "|", "markersize": 7, "markeredgewidth": 1.2}
"""How an interval is drawn."""


def highlights_figure(table: pd.DataFrame) -> Figure:
    """Draw the bits per character of a few models, best on top: see
    :func:`seqlm.pipeline.report.findings.chart_rows`.

    A filled mark with its value is test, the bar around it its interval, a hollow mark the text
    that the model was trained on.
    """
    rows = table.iloc[::-1].reset_index(drop=True)
    with new_figure(height=0.6 + 0.5 * len(rows), legend=3) as (figure, axes):
        for y, row in enumerate(rows.to_dict("records")):
            _, colour = name_and_colour(row)
            if pd.notna(row["seen_bits"]):
                ends = [row["seen_bits"], row["test_bits"]]
                axes.plot(ends, [y, y], color=colour, linewidth=0.8)
                axes.plot(ends[0], y, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot([row["ci_low"], row["ci_high"]], [y, y], color=colour, **_INTERVAL)
            axes.plot(row["test_bits"], y, "o", color=colour, markersize=7)
            axes.annotate(
                f"{row['test_bits']:.2f}",
                (max(row["test_bits"], row["ci_high"]), y),
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                fontweight="bold",
            )
            name = axes.annotate(
                row["label"], (0, y), xytext=(3, 14), textcoords="offset points", va="center"
            )
            name.set_in_layout(False)  # a long name makes no room for itself
        for name, colour in dict(map(name_and_colour, table.to_dict("records"))).items():
            axes.plot([], [], "o", color=colour, label=name)
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="on its training text")
        axes.plot([], [], color=GREY, **_INTERVAL, label="95 % interval")
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.set(
            xlabel="bits per character on unseen text (lower is better)",
            ylim=(-0.5, len(rows) - 0.25),
        )
        axes.set_xlim(0, 1.15 * max(rows["test_bits"].max(), rows["ci_high"].max()))
    return figure
