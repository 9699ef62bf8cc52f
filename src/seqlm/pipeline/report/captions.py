"""What figures show, in a sentence: captions computed from the numbers, so that they are true of
any text.

Only what surprises has one: that context misleads a model, which characters cost most, that runs
overfit, that repeating the last value beats a network, and that cutting gradients off can be better
than not. What other figures show can be seen. A caption is empty if there is nothing to say.
"""

import re
from collections.abc import Mapping

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.core.progress import count_noun
from seqlm.pipeline.report.drawing import contrasting, smoothed

Labels = Mapping[str, str]
"""Model -> its name in sentences."""

_OVERFITTED = 1.1
"""A run is overfitted if its last perplexity on val is higher than its best one by this factor."""
_NEAR = 1.05
"""Context adds little where perplexity is within this factor of that with all context."""
_REPEAT = "repeat the last value"


def all_captions(layout: Layout, table: pd.DataFrame) -> dict[str, str]:
    """Return the captions by the names of figures; ``table`` is the main table."""
    evaluate, labels = (
        layout.reports("evaluate"),
        dict(zip(table["model"], table["label"], strict=True)),
    )
    classes = read_csv(evaluate / "classes.csv")
    shown = contrasting(set(classes["model"]), table)
    found = {
        "positions": position_caption(read_csv(evaluate / "positions.csv"), shown, labels),
        "classes": class_caption(classes, shown, labels),
        "learning": overfitting_caption(read_csv(evaluate / "history.csv"), labels),
        "errors": repeating_caption(read_csv(layout.reports("sine", "errors.csv"))),
        "trained": trained_caption(read_csv(layout.reports("gradients", "trained.csv"))),
    }
    return {name: unbroken(caption) for name, caption in found.items()}


def unbroken(text: str) -> str:
    """Return a text that is not broken between a number and its sign."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\d) (?=[±×])|(?<=[±×]) ", "\N{NO-BREAK SPACE}", text)


def position_caption(positions: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """Return how much context the best of some models needs, and whether the last one is misled by
    it."""
    found = []
    for model in models:
        rows = smoothed(positions, model)
        if len(rows) < 2:
            continue
        first, last = (
            rows["perplexity"].iloc[0],
            rows["perplexity"].iloc[-(len(rows) // 4 or 1) :].mean(),
        )
        needed = int(rows["position"][rows["perplexity"] <= _NEAR * last].min())
        if model == models[0] and _NEAR * last < first:
            found.append(
                f"Beyond about {count_noun(needed, 'character')}, more context hardly helps {labels[model]}."
            )
        elif model == models[-1] and last > _OVERFITTED * first:
            found.append(
                f"Context misleads {labels[model]}: its perplexity is {first:.0f} after one character and {last:.0f} "
                f"after {int(rows['position'].max())}."
            )
    return " ".join(found)


def class_caption(classes: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """Return which class of character costs the first of some models most; columns model,
    token_class, share, bits."""
    rows = classes[classes["model"].isin(models[:1])]
    if len(rows) < 2:
        return ""
    costliest = rows.sort_values("bits").iloc[-1]
    costs = f"costs {labels[models[0]]} most: {costliest['bits']:.2f} bits on average."
    if costliest["token_class"] == "first letter":
        return f"The first letter of a word {costs} Which word comes next is hard to predict; its end is easier."
    return f"The class “{costliest['token_class']}” {costs}"


def overfitting_caption(history: pd.DataFrame, labels: Labels) -> str:
    """Return which runs were overfitted at the end; columns run, epoch, val_perplexity."""
    runs = []
    for run, rows in history.dropna(subset=["val_perplexity"]).groupby("run", sort=True):
        val = rows["val_perplexity"]
        if val.iloc[-1] > _OVERFITTED * val.min():
            best = f"{rows.loc[val.idxmin(), 'epoch']:.4g}"  # with a budget of tokens, parts of an epoch
            runs.append(
                f"{labels[str(run)]}, from {val.min():.1f} at epoch {best} to {val.iloc[-1]:.1f}"
            )
    return (
        f"Overfitting, with perplexity on val rising towards the end: {'; '.join(runs)}."
        if runs
        else ""
    )


def repeating_caption(errors: pd.DataFrame) -> str:
    """Return who predicts best furthest ahead, which may be repeating the last value; columns
    network, k, rmse."""
    last = errors[errors["k"] == errors["k"].max()].sort_values("rmse", kind="stable")
    if len(last) < 2:
        return ""
    numbers = ", ".join(f"{row.rmse:.2f} ({row.network})" for row in last.itertuples())
    first = (
        "repeating the last value"
        if last["network"].iloc[0] == _REPEAT
        else f"the {last['network'].iloc[0]}"
    )
    return f"{int(last['k'].iloc[0])} steps ahead, {first} has the smallest error: {numbers}."


def trained_caption(trained: pd.DataFrame) -> str:
    """Return which truncation is best on average, and how good none is; columns strategy, length,
    val_perplexity."""
    full, means = "no truncation", {}
    for (strategy, length), values in trained.groupby(["strategy", "length"], sort=False)[
        "val_perplexity"
    ]:
        name = (
            full
            if strategy == "full"
            else f"{strategy} truncation to {count_noun(int(length), 'token')}"
        )
        means[name] = values.mean()
    best = min(means, key=means.__getitem__)
    against = f", against {means[full]:.2f} with {full}" if best != full and full in means else ""
    return f"Perplexity is lowest with {best}: {means[best]:.2f}{against}."
