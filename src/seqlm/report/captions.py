"""What figures show, in a sentence: captions computed from the numbers, so that they are true of any text.

A caption is empty if there is nothing to say.
"""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout
from seqlm.core.progress import quantity
from seqlm.report.figures.plots import STUDIED, best_smoothings, contrasting, counted_models, most_clipped, smoothed
from seqlm.report.figures.style import power_of_ten
from seqlm.vocab.kinds import token_kind

Labels = Mapping[str, str]
"""Model -> its name in sentences."""

_OVERFITTED = 1.1
"""A run is overfitted if its last perplexity on val is higher than its best one by this factor."""
_NEAR = 1.05
"""Context adds little where perplexity is within this factor of that with all context."""
_STEPS_BACK = 20
_REPEAT = "repeat the last value"


def all_captions(layout: Layout, table: pd.DataFrame) -> dict[str, str]:
    """Return the captions by the names of figures; ``table`` is the main table."""
    evaluate, ngrams = layout.reports("evaluate"), layout.reports("ngrams")
    sine, gradients = layout.reports("sine"), layout.reports("gradients")
    labels: Labels = dict(zip(table["model"], table["label"], strict=True))
    words = read_json(ngrams / "word" / "summary.json")
    history, classes = read_csv(evaluate / "history.csv"), read_csv(evaluate / "classes.csv")
    limits = {run: read_json(layout.config(run))["grad_clip"] for run in history["run"].unique()}
    shown = contrasting(set(classes["model"]), table)
    found = {
        "orders": order_caption(table),
        "positions": position_caption(read_csv(evaluate / "positions.csv"), shown, labels),
        "classes": class_caption(classes, shown, labels),
        "learning": overfitting_caption(history, labels),
        "clipping": clipping_caption(history, labels, limits),
        "growth": growth_caption(words["zipf"], words["heaps_beta"]),
        "epsilons": epsilon_caption(read_csv(ngrams / "char" / "epsilons.csv")),
        "sine-steps": step_caption(read_csv(sine / "predictions.csv")),
        "sine-errors": repeating_caption(read_csv(sine / "errors.csv")),
        "reach": reach_caption(read_csv(gradients / "reach.csv")),
        "truncation": truncation_caption(read_csv(gradients / "convergence.csv")),
        "radius": radius_caption(read_csv(gradients / "radius.csv")),
        "trained": trained_caption(read_csv(gradients / "trained.csv")),
    }
    return {name: unbroken(caption) for name, caption in found.items()}


def unbroken(text: str) -> str:
    """Return a text that is not broken between a number and its sign."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\d) (?=[±×])|(?<=[±×]) ", "\N{NO-BREAK SPACE}", text)


def order_caption(table: pd.DataFrame) -> str:
    """Return the best order on val of each smoothing, for each kind of token, with its bits on test."""
    models = counted_models(table)
    kinds = []
    for token in sorted(best_smoothings(table), key=lambda token: not token_kind(token).is_lossless):
        # Words, whose bits do not compare with others', come last.
        orders = []
        for smoothing, rows in models[models["token"] == token].groupby("smoothing", sort=False):
            best = rows.iloc[0]
            bits = "infinite" if pd.isna(best["test_bits"]) else f"{best['test_bits']:.2f}"
            orders.append(f"{_tried(best['order'], rows['order'])} with {str(smoothing).title()} ({bits})")
        kinds.append(f"for {token_kind(token).noun}s, {_listed(orders)}")
    return f"Best orders on val, with bits on test: {'; '.join(kinds)}." if kinds else ""


def _tried(chosen: float, tried: pd.Series) -> str:
    """Return a value, and whether it is the smallest or the largest of those that were tried."""
    if tried.nunique() < 2 or tried.min() < chosen < tried.max():
        return _short(chosen)
    return f"{_short(chosen)} ({'smallest' if chosen == tried.min() else 'largest'} tried)"


def position_caption(positions: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """Return how much context the best of some models needs, and whether the last one is misled by it."""
    found = []
    for model in models:
        rows = smoothed(positions, model)
        if len(rows) < 2:
            continue
        first, last = rows["perplexity"].iloc[0], rows["perplexity"].iloc[-(len(rows) // 4 or 1) :].mean()
        needed = int(rows["position"][rows["perplexity"] <= _NEAR * last].min())
        if model == models[0] and last <= _OVERFITTED * first:
            if first > _NEAR * last:
                found.append(
                    f"Beyond about {quantity(needed, 'character')}, more context hardly helps {labels[model]}."
                )
            else:
                found.append(f"Context hardly helps {labels[model]}.")
        elif model == models[-1] and last > _OVERFITTED * first:
            found.append(
                f"Context misleads {labels[model]}: its perplexity is {first:.0f} after one character and {last:.0f} "
                f"after {int(rows['position'].max())}."
            )
    return " ".join(found)


def class_caption(classes: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """Return which class of character costs the first of some models most; columns model, token_class, share, bits."""
    rows = classes[classes["model"].isin(models[:1])]
    if len(rows) < 2:
        return ""
    costliest = rows.sort_values("bits").iloc[-1]
    costs = f"costs {labels[models[0]]} most: {costliest['bits']:.2f} bits on average."
    if costliest["token_class"] == "first letter":
        return f"The first letter of a word {costs} Which word comes next is hard to predict; its end is easier."
    return f"The class “{costliest['token_class']}” {costs}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} percentage points"


def overfitting_caption(history: pd.DataFrame, labels: Labels) -> str:
    """Return which runs were overfitted at the end; columns run, epoch, val_perplexity."""
    runs = []
    for run, rows in history.dropna(subset=["val_perplexity"]).groupby("run", sort=True):
        val = rows["val_perplexity"]
        if val.iloc[-1] > _OVERFITTED * val.min():
            best = _short(rows.loc[val.idxmin(), "epoch"])  # with a budget of tokens, parts of an epoch
            runs.append(f"{labels[str(run)]}, from {val.min():.1f} at epoch {best} to {val.iloc[-1]:.1f}")
    return f"Overfitting, with perplexity on val rising towards the end: {'; '.join(runs)}." if runs else ""


def clipping_caption(history: pd.DataFrame, labels: Labels, limits: Mapping[str, float]) -> str:
    """Return which run clips the largest share of its steps; ``limits``: run -> the largest norm."""
    found = most_clipped(history)
    if found is None:
        return ""
    run, share = found
    if not share:
        return "No run clipped any step."
    return (
        f"Over all its epochs, {labels[run]} clips most: {100 * share:.0f} % of its steps had a norm above "
        f"{limits[run]:g}."
    )


def growth_caption(zipf: Mapping[str, Mapping[str, Any]], beta: float | None) -> str:
    """Return what Heaps' exponent means, and how many words occur once."""
    found = []
    if beta is not None:
        found.append(f"A text twice as long has about {2**beta:.1f} times as many distinct words.")
    if "1" in zipf:
        found.append(f"{100 * zipf['1']['share_once']:.0f} % of the distinct words occur only once.")
    return " ".join(found)


def epsilon_caption(curve: pd.DataFrame) -> str:
    """Return the best epsilon of each order on val; columns order, epsilon, val_perplexity."""
    if curve["val_perplexity"].notna().sum() == 0:
        return ""
    best = curve.loc[curve.groupby("order")["val_perplexity"].idxmin().dropna()]
    epsilons = curve.groupby("order")["epsilon"]
    listed = [
        f"{_tried(row.epsilon, epsilons.get_group(row.order))} for order {row.order}" for row in best.itertuples()
    ]
    return f"Best on val: {_listed(listed)}."


def step_caption(predictions: pd.DataFrame) -> str:
    """Return the errors of one-step and of multi-step predictions, and that of predicting the mean."""
    rows = predictions.dropna(subset=["one_step", "multi_step"])
    if (rows["one_step"] != rows["multi_step"]).sum() < 2:
        return ""
    end, rows = int(rows["time"].iloc[0]) - 1, rows[rows["one_step"] != rows["multi_step"]]
    one, many = (float((rows[name] - rows["observed"]).pow(2).mean() ** 0.5) for name in ("one_step", "multi_step"))
    mean = float(rows["observed"].std(ddof=0))
    verdict = "more" if many > mean else "less"
    return (
        f"The training part ends at time {end}. After it, the error (root mean squared) from the network's own "
        f"predictions is {many:.2f}, against {one:.2f} one step ahead: {verdict} than that of always predicting the "
        f"mean of this part, {mean:.2f}."
    )


def repeating_caption(errors: pd.DataFrame) -> str:
    """Return whether the networks are better than repeating the last value; columns network, k, rmse."""
    wide = errors.pivot_table(index="k", columns="network", values="rmse", sort=False).dropna().sort_index()
    if _REPEAT not in wide or wide.shape[1] < 2 or wide.empty:
        return ""
    networks = [name for name in wide if name != _REPEAT]
    beats = wide[_REPEAT] < wide[networks].min(axis=1)
    losing = beats[~beats].index
    last = wide.iloc[-1]
    numbers = _listed([f"{last[name]:.2f} ({name})" for name in (_REPEAT, *networks)])
    if not beats.iloc[-1]:
        best = min(networks, key=lambda name: last[name])
        return f"{int(wide.index[-1])} steps ahead, {best} has the smallest error: {numbers}."
    whom = {1: "the network", 2: "both networks"}.get(len(networks), "all networks")
    since = (
        f"From {int(beats.index[beats.index > losing[-1]][0])} steps ahead on" if len(losing) else "At every distance"
    )
    return (
        f"{since}, repeating the last value beats {whom}: {int(wide.index[-1])} steps ahead, the errors are {numbers}."
    )


def reach_caption(reach: pd.DataFrame) -> str:
    """Return what is left of the gradients of trained networks some steps back; columns model, moment, k, norm."""
    trained = reach[reach["moment"] == "trained"]
    if trained.empty:
        return ""
    steps = min(_STEPS_BACK, int(trained["k"].max()))
    rows = trained[trained["k"] == steps].sort_values("norm", ascending=False, kind="stable")
    left = _listed([f"{_power(row.norm)} ({STUDIED[str(row.model)].name})" for row in rows.itertuples()])
    return f"After training, {steps} steps back, this much is left of the gradient: {left}."


def radius_caption(radius: pd.DataFrame) -> str:
    """Return how the spectral radius of each network changed; columns model, minibatch, spectral_radius."""
    changes = []
    for model, rows in radius.groupby("model", sort=False):
        values = rows["spectral_radius"]
        first, last, largest = (f"{value:.2f}" for value in (values.iloc[0], values.iloc[-1], values.max()))
        peak = "" if largest in (first, last) else f" (at most {largest})"
        changes.append(f"{STUDIED[str(model)].name}, from {first} to {last}{peak}")
    return f"Its spectral radius: {'; '.join(changes)}." if changes else ""


def truncation_caption(convergence: pd.DataFrame) -> str:
    """Return how far the mean of many truncated gradients is from the full one; columns strategy, draws, distance."""
    last = convergence.sort_values("draws", kind="stable").drop_duplicates("strategy", keep="last")
    far = [f"{100 * row.distance:.1f} % ({row.strategy})" for row in last.itertuples()]
    draws = int(convergence["draws"].max()) if len(convergence) else 0
    return f"The mean of {draws} gradients still differs from the full one by {_listed(far)}." if far else ""


def trained_caption(trained: pd.DataFrame) -> str:
    """Return which truncation is best on average, and which others its seeds do not beat.

    Columns strategy, length, seed, val_perplexity.
    """
    full, groups = "no truncation", {}
    for (strategy, length), rows in trained.groupby(["strategy", "length"], sort=False):
        name = full if strategy == "full" else f"{strategy} truncation to {quantity(int(length), 'token')}"
        groups[name] = rows["val_perplexity"]
    name, best = min(groups.items(), key=lambda item: item[1].mean())
    what = f"The mean of {len(best)} seeds" if len(best) > 1 else "Perplexity"
    caption = f"{what} is lowest with {name}: {best.mean():.2f}"
    if name != full and full in groups:
        caption += f", against {groups[full].mean():.2f} with {full}"
    if len(best) < 2 or len(groups) < 2:
        return f"{caption}."
    rivals = [other for other, values in groups.items() if other != name and values.min() <= best.max()]
    others = f"Its seeds overlap with those of {_listed(rivals)}" if rivals else "All other seeds are worse"
    return f"{caption}. {others}."


def _listed(items: list[str], comma: str = ", ") -> str:
    """Return items as in a sentence: a, b and c."""
    return comma.join(items[:-1]) + (" and " if len(items) > 1 else "") + "".join(items[-1:])


def _short(value: float) -> str:
    """Return a number with two digits, or as an integer from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _power(value: float) -> str:
    """Return a small number with one digit, as a multiple of a power of ten."""
    if not value > 0 or value >= 0.01:
        return f"{value:.2g}"
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit} × {power_of_ten(int(exponent))}"
