"""Captions of figures, computed from the numbers so that they are true of any text.

Only surprising results have one: that context misleads a model, which characters cost most, that
runs overfit, that repeating the last value beats a network, and that truncating gradients can be
better than not. A caption is empty if there is nothing to say.
"""

from collections.abc import Mapping

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.core.progress import count_noun
from seqlm.pipeline.report.drawing import extreme_models, smoothed
from seqlm.pipeline.report.formats import unbroken
from seqlm.pipeline.report.main_table import labels_by_model

Labels = Mapping[str, str]
"""Model -> its name in sentences."""

_OVERFITTED = 1.1
"""A run is overfitted if its last validation perplexity exceeds its best one by this factor."""
_NEAR = 1.05
"""Context adds little if perplexity is within this factor of that with all context."""
_REPEAT = "repeat the last value"


def all_captions(layout: Layout, table: pd.DataFrame) -> dict[str, str]:
    """Figure -> its caption; ``table`` is the main table."""
    evaluate = layout.reports("evaluate")
    labels = labels_by_model(table)
    classes = read_csv(evaluate / "classes.csv")
    models = extreme_models(set(classes["model"]), table)
    captions = {
        "positions": position_caption(read_csv(evaluate / "positions.csv"), models, labels),
        "classes": class_caption(classes, models, labels),
        "learning": overfitting_caption(read_csv(evaluate / "history.csv"), labels),
        "errors": repeating_caption(read_csv(layout.reports("sine", "errors.csv"))),
        "trained": trained_caption(read_csv(layout.reports("gradients", "trained.csv"))),
    }
    return {name: unbroken(caption) for name, caption in captions.items()}


def position_caption(positions: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """How much context the first model needs, and whether the last one is misled by it."""
    sentences = []
    for model in models:
        rows = smoothed(positions, model)
        if len(rows) < 2:
            continue
        name, perplexities = _with_article(labels[model]), rows["perplexity"]
        first, last = perplexities.iloc[0], perplexities.tail(len(rows) // 4 or 1).mean()
        if model == models[0] and _NEAR * last < first:
            needed = int(rows["position"][perplexities <= _NEAR * last].min())
            context = count_noun(needed, "character")
            sentences.append(f"Beyond about {context}, more context hardly helps {name}.")
        elif model == models[-1] and last > _OVERFITTED * first:
            sentences.append(
                f"Context misleads {name}: its perplexity is {first:.0f} after one "
                f"character and {last:.0f} after {int(rows['position'].max())}."
            )
    return " ".join(sentences)


def _with_article(label: str) -> str:
    """The label in a sentence: "the LSTM", but "word trigrams" and "the chapter's RNN"."""
    return label if label[:1].islower() else f"the {label}"


def class_caption(classes: pd.DataFrame, models: list[str], labels: Labels) -> str:
    """Which characters cost the first model most; columns model, token_class, share, bits."""
    rows = classes[classes["model"].isin(models[:1])]
    if len(rows) < 2:
        return ""
    costliest = rows.sort_values("bits").iloc[-1]
    name = _with_article(labels[models[0]])
    cost = f"costs {name} the most: {costliest['bits']:.2f} bits on average."
    if costliest["token_class"] != "first letter":
        return f"The class “{costliest['token_class']}” {cost}"
    return (
        f"The first letter of a word {cost} Which word comes next is hard to predict; its end is "
        "easier."
    )


def overfitting_caption(history: pd.DataFrame, labels: Labels) -> str:
    """Which runs were overfitted at the end; columns run, epoch, val_perplexity."""
    runs = []
    for run, rows in history.dropna(subset=["val_perplexity"]).groupby("run", sort=True):
        best = rows.loc[rows["val_perplexity"].idxmin()]
        last = rows["val_perplexity"].iloc[-1]
        if last > _OVERFITTED * best["val_perplexity"]:
            epoch = f"{best['epoch']:.4g}"  # a token budget may end within an epoch
            runs.append(
                f"{labels[str(run)]}, from {best['val_perplexity']:.1f} at epoch {epoch} "
                f"to {last:.1f}"
            )
    if not runs:
        return ""
    return f"Overfitting, with perplexity on val rising towards the end: {'; '.join(runs)}."


def repeating_caption(errors: pd.DataFrame) -> str:
    """What predicts best furthest ahead; columns network, k, rmse."""
    furthest = errors[errors["k"] == errors["k"].max()].sort_values("rmse", kind="stable")
    if len(furthest) < 2:
        return ""
    rmse = ", ".join(f"{row.rmse:.2f} ({row.network})" for row in furthest.itertuples())
    name, k = furthest["network"].iloc[0], int(furthest["k"].iloc[0])
    best = "repeating the last value" if name == _REPEAT else f"the {name}"
    return f"{count_noun(k, 'step')} ahead, {best} has the smallest error: {rmse}."


def trained_caption(trained: pd.DataFrame) -> str:
    """Which truncation is best on average; columns strategy, length, val_perplexity."""
    full = "no truncation"
    means = {}
    by_truncation = trained.groupby(["strategy", "length"], sort=False)
    for (strategy, length), perplexities in by_truncation["val_perplexity"]:
        name = f"{strategy} truncation to {count_noun(int(length), 'token')}"
        means[full if strategy == "full" else name] = perplexities.mean()
    best = min(means, key=means.__getitem__)
    against = f", against {means[full]:.2f} with {full}" if best != full and full in means else ""
    return f"Perplexity is lowest with {best}: {means[best]:.2f}{against}."
