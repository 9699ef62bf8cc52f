"""Figures of data: of the sine, of n-grams, of models and their training, and of gradients."""

import itertools
import math
import textwrap
from collections.abc import Collection, Mapping, Sequence
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
    MARKERS,
    NGRAM_COLOUR,
    OLIVE,
    SERIES,
    VERMILION,
    LineStyle,
    legend_above,
    name_and_colour,
    new_figure,
)
from seqlm.vocab.kinds import token_kind

_NAMES = {1: "unigram", 2: "bigram", 3: "trigram"}
_ROW_HEIGHT = 0.5
# What is left out of figures, so that their curves can be read and their files are small.
_SMOOTHING_WINDOW = 9
"""Positions whose perplexities are averaged, because those of single positions are noisy."""
_MAX_POINTS = 200
_LEAST_SHARE = 1e-12
"""Of a gradient at k = 0."""
STUDIED = {
    "scratch": LineStyle(BLUE, "-", "o", "RNN with tanh"),
    "relu": LineStyle(BLUE, ":", "s", "RNN with ReLU"),
    "gru": LineStyle(OLIVE, "--", "^", "GRU"),
    "lstm": LineStyle(VERMILION, "-.", "v", "LSTM"),
}
"""The networks of the study of gradients."""
_STRATEGIES = {"regular": SERIES[0], "randomized": SERIES[1], "full": SERIES[2]}

_INTERVAL: dict[str, Any] = {"linewidth": 2.5, "marker": "|", "markersize": 7, "markeredgewidth": 1.2}
"""How an interval is drawn."""

Styles = Mapping[str, LineStyle]
"""Model -> how it is drawn."""
_SPLIT_LINES = {"train": "-", "val": "--"}
MAX_RUNS = 6
"""Runs whose learning curves are drawn."""


def contrasting(models: Collection[str], table: pd.DataFrame) -> list[str]:
    """Return at most three of some models, the best on val first: the best of each family, and the worst of all."""
    rows = table[table["model"].isin(models)].sort_values("val_bits", kind="stable")
    best = rows.drop_duplicates("family")["model"]
    return list(dict.fromkeys([*best, *rows["model"].tail(1)]))[:3]


def trained_runs(history: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Return the runs whose learning curves are drawn, the best on val first."""
    rows = table[table["model"].isin(history["run"])].sort_values("val_bits", kind="stable")
    return list(rows["model"].head(MAX_RUNS))


def most_clipped(history: pd.DataFrame) -> tuple[str, float] | None:
    """Return the run that clips the largest share of its steps, and this share; None if there is none."""
    shares = history.groupby("run", sort=True)["clipped_share"].mean().dropna().sort_values(kind="stable")
    return None if shares.empty else (str(shares.index[-1]), float(shares.iloc[-1]))


def predictions_figure(frame: pd.DataFrame, columns: dict[str, str]) -> Figure:
    """Draw the observed values and predictions against time, one panel for each kind of prediction.

    ``frame`` has the columns time, observed and those that ``columns`` maps to titles.
    """
    frame = frame.iloc[::2]  # the eye sees no difference, and the file is half as large
    with new_figure(len(columns), height=0.5 + 1.25 * len(columns), legend=2, same_axes=True) as (figure, _):
        for axes, (column, label) in zip(figure.axes, columns.items(), strict=True):
            axes.plot(frame["time"], frame["observed"], color=GREY, linewidth=0.8, label="data")
            axes.plot(frame["time"], frame[column], color=MAGENTA, linewidth=1.3, label="prediction")
            axes.set_title(label)
        figure.axes[-1].set_xlabel("time")
    return figure


def error_figure(errors: pd.DataFrame, noise: float) -> Figure:
    """Draw the error against k for each network (columns network, k, rmse), with the noise as the floor."""
    with new_figure(height=3, legend=2) as (figure, axes):
        for (network, rows), style in zip(errors.groupby("network", sort=False), itertools.cycle(SERIES), strict=False):
            axes.plot(rows["k"], rows["rmse"], **style.line, label=str(network))
        axes.axhline(noise, color=GREY, linestyle=":", label="noise")
        axes.set(xlabel="k, steps ahead", ylabel="root mean squared error", xlim=(0, errors["k"].max()), ylim=(0, None))
    return figure


def zipf_figure(ranks: pd.DataFrame, fits: Mapping[int, Mapping[str, Any]]) -> Figure:
    """Draw count against rank for each order, with the fitted lines over their range.

    ``ranks`` has the columns n, rank, count; ``fits`` maps n to max_rank, alpha_least_squares
    and intercept, where n has enough distinct n-grams for a fit.
    """
    with new_figure(height=3.6) as (figure, axes):
        for (order, rows), style in zip(ranks.groupby("n"), itertools.cycle(SERIES), strict=False):
            name, fit = _NAMES.get(int(str(order)), f"{order}-gram"), fits.get(int(str(order)))
            label = name if fit is None else f"{name}, slope {-fit['alpha_least_squares']:.2f}"
            axes.plot(rows["rank"], rows["count"], **style.line, label=label)
            if fit is not None:
                ends = (1, fit["max_rank"])
                line = [math.exp(fit["intercept"] - fit["alpha_least_squares"] * math.log(end)) for end in ends]
                axes.plot(ends, line, color=style.color, linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="count", ylim=(0.7, None))
        axes.legend()
    return figure


def growth_figure(growth: pd.DataFrame, beta: float | None) -> Figure:
    """Draw the number of distinct tokens against the length of the text; columns tokens, distinct.

    ``beta`` is Heaps' exponent; None if there is none.
    """
    with new_figure(height=3.2) as (figure, axes):
        axes.plot(growth["tokens"], growth["distinct"], color=INK)
        axes.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="distinct tokens")
        if beta is not None:
            axes.set_title(f"Heaps' law: exponent {beta:.2f}")
    return figure


def epsilon_figure(curve: pd.DataFrame) -> Figure:
    """Draw val perplexity against epsilon for each order, a dot on the best; columns order, epsilon, val_perplexity."""
    with new_figure(height=3, legend=3) as (figure, axes):
        for (order, rows), style in zip(curve.groupby("order"), itertools.cycle(SERIES), strict=False):
            axes.plot(rows["epsilon"], rows["val_perplexity"], **style.line, label=f"order {order}")
            best = rows.loc[rows["val_perplexity"].idxmin()]
            axes.plot(best["epsilon"], best["val_perplexity"], "o", color=style.color)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="perplexity on val")
    return figure


def order_figure(scores: pd.DataFrame, table: pd.DataFrame, styles: Styles) -> Figure:
    """Draw bits per character on test against order, one line for each kind of token, and the best network.

    ``scores`` has the columns token, smoothing, order, bits_per_character; ``table`` is the main table. Of the
    smoothing methods, the best one on val is drawn.
    """
    scores = scores[scores["smoothing"] == scores["token"].map(best_smoothings(table))]
    orders = sorted(scores["order"].unique())
    with new_figure(height=2.8) as (figure, axes):
        _draw_orders(axes, scores)
        _draw_best_network(axes, table, styles)
        axes.set(ylabel="bits per character", xticks=orders, xlim=(orders[0] - 0.15, orders[-1] + 0.15))
        legend_above(axes, "")
        axes.set_xlabel("order of the n-gram model")
    return figure


def counted_models(table: pd.DataFrame) -> pd.DataFrame:
    """Return the static n-gram models of all of train, over their own tokens, best on val first."""
    models = table[(table["family"] == "ngram") & (table["counted_token"] == table["token"]) & ~table["dynamic"]]
    models = models[models["order"] > 0]
    models = models[models["train_chars"] == models.groupby("token")["train_chars"].transform("max")]
    return models.sort_values("val_bits", kind="stable")


def best_smoothings(table: pd.DataFrame) -> dict[str, str]:
    """Return for each kind of token the smoothing method of its best static n-gram model on val."""
    models = counted_models(table).drop_duplicates("token")
    return dict(zip(models["token"], models["smoothing"], strict=True))


def _draw_orders(axes: Axes, scores: pd.DataFrame) -> None:
    looks = zip(itertools.cycle(("-", ":", "-.")), itertools.cycle(MARKERS), strict=False)  # the best network is dashed
    for ((token, smoothing), rows), look in zip(scores.groupby(["token", "smoothing"]), looks, strict=False):
        name = f"{token_kind(token).noun}s, {smoothing.title()}"
        axes.plot(rows["order"], rows["bits_per_character"], **LineStyle(NGRAM_COLOUR, *look).points, label=name)


def _draw_best_network(axes: Axes, table: pd.DataFrame, styles: Styles) -> None:
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    for row in networks.dropna(subset=["test_bits"]).sort_values("val_bits", kind="stable").head(1).itertuples():
        style = styles[str(row.model)]
        axes.axhline(row.test_bits, color=style.color, linestyle="--", label=style.name)


def highlights_figure(table: pd.DataFrame) -> Figure:
    """Draw the bits per character of a few models, best on top: see :func:`seqlm.report.findings.highlights`.

    A filled mark with its value is test, the bar around it its interval, a hollow mark the text that the model was
    trained on. A line parts models that keep learning from the others.
    """
    rows = table.iloc[::-1].reset_index(drop=True)
    with new_figure(height=0.6 + _ROW_HEIGHT * len(rows), legend=3) as (figure, axes):
        for place, row in enumerate(rows.to_dict("records")):
            _, colour = name_and_colour(row)
            marker = "D" if row["dynamic"] else "o"
            if pd.notna(row["seen_bits"]):
                ends = [row["seen_bits"], row["test_bits"]]
                axes.plot(ends, [place, place], color=colour, linewidth=0.8)
                axes.plot(ends[0], place, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot([row["ci_low"], row["ci_high"]], [place, place], color=colour, **_INTERVAL)
            axes.plot(row["test_bits"], place, marker, color=colour, markersize=7)
            axes.annotate(
                f"{row['test_bits']:.2f}", (max(row["test_bits"], row["ci_high"]), place), xytext=(7, 0),
                textcoords="offset points", va="center", fontweight="bold",
            )  # fmt: skip
            name = axes.annotate(row["label"], (0, place), xytext=(3, 14), textcoords="offset points", va="center")
            name.set_in_layout(False)  # a long name makes no room for itself
        for name, colour in dict(map(name_and_colour, table.to_dict("records"))).items():
            axes.plot([], [], "o", color=colour, label=name)
        if num_dynamic := int(rows["dynamic"].sum()):
            axes.plot([], [], "D", color=GREY, label="still learning")
        axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="on its training text")
        axes.plot([], [], color=GREY, **_INTERVAL, label="95 % interval")
        if 0 < num_dynamic < len(rows):
            axes.axhline(num_dynamic - 0.35, color=GREY, linewidth=0.5, linestyle=":")
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.set(xlabel="bits per character on test (lower is better)", ylim=(-0.5, len(rows) - 0.25))
        axes.set_xlim(0, 1.15 * max(rows["test_bits"].max(), rows["ci_high"].max()))
    return figure


def learning_figure(history: pd.DataFrame, styles: Styles, runs: Sequence[str]) -> Figure:
    """Draw perplexity on train and on val against epoch, one panel for each of some runs.

    ``history`` has the columns run, epoch, train_perplexity, val_perplexity.
    """
    height, columns = 0.5 + 1.75 * math.ceil(len(runs) / 2), min(2, len(runs))
    with new_figure(len(runs), height=height, columns=columns, legend=2, same_axes=True) as (figure, _):
        for axes, run in zip(figure.axes, runs, strict=False):
            rows, style = history[history["run"] == run], styles[run]
            axes.set(xscale="log", yscale="log")
            for split, line in _SPLIT_LINES.items():
                curve = _thinned(rows.dropna(subset=[f"{split}_perplexity"]))
                axes.plot(curve["epoch"], curve[f"{split}_perplexity"], line, color=style.color)
            axes.set_title(textwrap.fill(style.name, 26))
        for split, line in _SPLIT_LINES.items():
            figure.axes[0].plot([], [], line, color=INK, label=split)
        for axes in figure.axes[len(runs) - columns : len(runs)]:
            axes.set_xlabel("epoch")
            axes.tick_params(labelbottom=True)
        for axes in figure.axes[len(runs) :]:
            axes.remove()
        figure.supylabel("perplexity", fontsize=10)
    return figure


def _thinned(rows: pd.DataFrame, most: int = _MAX_POINTS) -> pd.DataFrame:
    """Return at most about ``most`` rows, spaced evenly on a logarithmic scale, the first and last among them."""
    places = {round(len(rows) ** (index / (most - 1))) - 1 for index in range(most)}
    return rows.iloc[sorted(places)] if len(rows) else rows


def clipping_figure(history: pd.DataFrame, styles: Styles, best: str) -> Figure:
    """Draw norms before clipping and shares of clipped steps, of the best run on val and of the one that clips most.

    Columns run, epoch, grad_norm, clipped_share.
    """
    most, _ = most_clipped(history) or (best, 0.0)
    with new_figure(2, height=4.4, legend=1) as (figure, panels):
        titles = {"grad_norm": "Mean norm before clipping", "clipped_share": "Share of steps clipped"}
        for axes, (column, title) in zip(panels, titles.items(), strict=True):
            for run in dict.fromkeys((best, most)):
                rows, style = _thinned(history[history["run"] == run], _MAX_POINTS // 2), styles[run]
                axes.plot(rows["epoch"], rows[column], **style.line, label=style.name)
            axes.set_title(title)
            axes.set(xscale="log", **({"yscale": "log"} if column == "grad_norm" else {"ylim": (-0.02, 1.02)}))
        panels[1].set_xlabel("epoch")
    return figure


def position_figure(positions: pd.DataFrame, styles: Styles, models: Sequence[str]) -> Figure:
    """Draw some models' perplexity against the number of tokens of context; columns model, position, perplexity."""
    with new_figure(height=3, legend=1) as (figure, axes):
        for model in models:
            rows, style = smoothed(positions, model), styles[model]
            shown = _thinned(rows, 80)
            axes.plot(shown["position"], shown["perplexity"], **style.line, label=style.name)
        axes.set(xscale="log", yscale="log", xlabel="characters of context", ylabel="perplexity on test")
    return figure


def smoothed(positions: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return a model's perplexities by position, averaged over neighbours except at the beginning."""
    rows = positions[positions["model"] == model]
    smooth = rows["perplexity"].rolling(_SMOOTHING_WINDOW, center=True, min_periods=1).mean()
    return rows.assign(perplexity=smooth.where(rows["position"] > _SMOOTHING_WINDOW, rows["perplexity"]))


def class_figure(classes: pd.DataFrame, styles: Styles, models: Sequence[str]) -> Figure:
    """Draw some models' mean surprisal by class of character as bars; columns model, token_class, share, bits."""
    names = list(dict.fromkeys(classes["token_class"]))
    shares = classes.drop_duplicates("token_class").set_index("token_class")["share"]
    shown = classes[classes["model"].isin(models)]
    # In the first class, the name of each model has a row of its own above its bar.
    slots = [0.9 if row else 1.8 for row in range(len(names)) for _ in models]
    with new_figure(height=0.7 + 0.19 * (sum(slots) + len(names))) as (figure, axes):
        at, ticks = 0.0, []
        for row, name in enumerate(names):
            begin = at
            for model, hatch in zip(models, ("", "////", "...."), strict=False):
                style, rows = styles[model], classes[(classes["model"] == model) & (classes["token_class"] == name)]
                value, slot = float(rows["bits"].iloc[0]), slots.pop(0)
                at += slot
                axes.barh(at, value, 0.75, color=style.color, hatch=hatch, edgecolor=GREY, linewidth=0)
                axes.annotate(f"{value:.2f}", (value, at), xytext=(4, 0), textcoords="offset points", va="center")
                if row == 0:
                    axes.annotate(style.name, (0, at - 0.9), xytext=(3, 0), textcoords="offset points", va="center")
            ticks.append((begin + at + 0.9) / 2)
            at += 1
        axes.set_yticks(ticks, [f"{name}\n({shares[name]:.0%})" for name in names])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False)
        axes.set(xlabel="bits per character on test", xlim=(0, 1.15 * shown["bits"].max()), ylim=(at, 0))
    return figure


def reach_figure(reach: pd.DataFrame) -> Figure:
    """Draw the gradient's norm against k for each model, before training and after; columns as in the study."""
    with new_figure(2, height=4.6, legend=2) as (figure, panels):
        for axes, moment in zip(panels, ("initial", "trained"), strict=True):
            _draw_reach(axes, reach[reach["moment"] == moment])
            axes.set(yscale="log", ylabel="relative to k = 0", title=f"Gradient, {moment} weights")
        panels[1].set_xlabel("k, steps back")
    return figure


def _draw_reach(axes: Axes, reach: pd.DataFrame) -> None:
    for model, curve in reach.groupby("model", sort=False):
        # A curve ends where it leaves the scale: held at the floor, it would look as if it continued.
        shown, style = curve["norm"].where(curve["norm"] >= _LEAST_SHARE), STUDIED[str(model)]
        axes.plot(curve["k"], shown, **style.line, label=style.name)


def radius_figure(radius: pd.DataFrame) -> Figure:
    """Draw the spectral radius of W_hh over training; columns model, minibatch, spectral_radius."""
    with new_figure(1, height=2.4) as (figure, (axes,)):
        for model, rows in radius.groupby("model", sort=False):
            style = STUDIED[str(model)]
            axes.plot(rows["minibatch"], rows["spectral_radius"], **style.points, label=style.name)
        axes.axhline(1, color=GREY, linestyle="--", linewidth=0.8)
        axes.set(xlabel="minibatches", ylim=(0, None))
        legend_above(axes, "spectral radius", columns=2)
    return figure


def truncation_figure(truncation: pd.DataFrame, convergence: pd.DataFrame) -> Figure:
    """Draw bias and spread against length, and how the mean over draws nears the full gradient.

    Columns as in the study. A bias below two standard errors is left out: so much comes
    from drawing alone. Bars are two standard errors.
    """
    with new_figure(2, height=5.6, legend=2) as (figure, (left, right)):
        for strategy, rows in truncation.groupby("strategy", sort=False):
            style = _STRATEGIES[str(strategy)]
            spread = rows[rows["spread"] > 0]  # if every step is cut, no draw differs from another
            left.plot(spread["length"], spread["spread"], "o--", color=style.color, label=f"{strategy}, spread")
            seen = rows[rows["bias"] > 2 * rows["standard_error"]]
            if not seen.empty:
                left.errorbar(
                    seen["length"], seen["bias"], 2 * seen["standard_error"], fmt="s-", color=style.color, markersize=4,
                    capsize=2, label=f"{strategy}, bias",
                )  # fmt: skip
        left.set(xscale="log", yscale="log", xlabel="length (expected, if randomized)", title="One gradient")
        _name_lengths(left, truncation)
        for strategy, rows in convergence.groupby("strategy", sort=False):
            style = _STRATEGIES[str(strategy)]
            right.plot(rows["draws"], rows["distance"], color=style.color)
            right.plot(rows["draws"], rows["standard_error"], ":", color=style.color)
        length = truncation["length"].max()
        right.set(xscale="log", yscale="log", xlabel="draws")
        right.set_title(
            f"Mean of draws, length {length}: distance from full\ngradient (solid), standard error (dotted)"
        )
        for axes in (left, right):
            axes.set_ylabel("relative to full gradient")
        right.yaxis.set_minor_formatter(NullFormatter())
    return figure


def trained_figure(trained: pd.DataFrame) -> Figure:
    """Draw perplexity on val against length: dots are training runs, lines their means; columns as in the study."""
    with new_figure(height=3.2, legend=3) as (figure, axes):
        for strategy, rows in trained.groupby("strategy", sort=False):
            style, aside = _STRATEGIES[str(strategy)], 1.1 if strategy == "randomized" else 1  # beside other marks
            means = rows.groupby("length")["val_perplexity"].mean()
            axes.plot(rows["length"] * aside, rows["val_perplexity"], style.marker, color=style.color)
            if strategy == "full":
                axes.axhline(means.iloc[0], **style.line)
            else:
                axes.plot(means.index * aside, means, **style.line)
            axes.plot([], [], **style.points, label=str(strategy))
        axes.set(xscale="log", xlabel="length (expected, if randomized)", ylabel="perplexity on val")
        _name_lengths(axes, trained)
    return figure


def _name_lengths(axes: Axes, table: pd.DataFrame) -> None:
    lengths = sorted(table["length"].unique())
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
