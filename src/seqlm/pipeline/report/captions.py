"""Facts that the captions of figures state, computed from the numbers so that they are true of any
text; ``captions.html`` has the words.

Only surprising results have a caption: that context misleads a model, which characters cost most,
that runs overfit, that repeating the last value beats a network, and that truncating gradients can
be better than not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.pipeline.report.drawing import extreme_models, smoothed
from seqlm.pipeline.report.main_table import labels_by_model

Labels = Mapping[str, str]
"""Model -> its name in sentences."""
Facts = Any
"""What a macro takes."""

_OVERFITTED = 1.1
"""A run is overfitted if its last validation perplexity exceeds its best one by this factor."""
_NEAR = 1.05
"""Context adds little if perplexity is within this factor of that with all context."""


def caption_facts(layout: Layout, table: pd.DataFrame) -> dict[str, Facts]:
    """Macro of ``captions.html`` -> what it takes; ``table`` is the main table."""
    evaluate, labels = layout.reports("evaluate"), labels_by_model(table)
    classes = read_csv(evaluate / "classes.csv")
    models = extreme_models(classes["model"], table)
    return {
        "context": context_facts(read_csv(evaluate / "positions.csv"), models, labels),
        "classes": costliest_class(classes, models, labels),
        "overfitting": overfitted_runs(read_csv(evaluate / "history.csv"), labels),
        "repeating": furthest_errors(read_csv(layout.reports("sine", "errors.csv"))),
        "truncation": best_truncation(read_csv(layout.reports("gradients", "trained.csv"))),
    }


def context_facts(positions: pd.DataFrame, models: Sequence[str], labels: Labels) -> Facts:
    """After how many characters more context hardly helps the first model, and how much context
    misleads the last one."""
    facts: Facts = {"helped": None, "misled": None}
    for model in models:
        rows = smoothed(positions, model)
        if len(rows) < 2:
            continue
        perplexities = rows["perplexity"]
        first, last = perplexities.iloc[0], perplexities.tail(len(rows) // 4 or 1).mean()
        if model == models[0] and _NEAR * last < first:
            needed = int(rows["position"][perplexities <= _NEAR * last].min())
            facts["helped"] = {"label": labels[model], "needed": needed}
        elif model == models[-1] and last > _OVERFITTED * first:
            furthest = int(rows["position"].max())
            facts["misled"] = {
                "label": labels[model], "first": first, "last": last, "furthest": furthest
            }  # fmt: skip
    return facts


def costliest_class(classes: pd.DataFrame, models: Sequence[str], labels: Labels) -> Facts:
    """Which class of characters costs the first model most; columns model, token_class, bits."""
    rows = classes[classes["model"].isin(models[:1])].sort_values("bits")
    if len(rows) < 2:
        return {}
    return {"label": labels[models[0]]} | rows.iloc[-1].to_dict()


def overfitted_runs(history: pd.DataFrame, labels: Labels) -> Facts:
    """Which runs were overfitted at the end; columns run, epoch, val_perplexity."""
    history = history.dropna(subset=["val_perplexity"])
    of_run = history.groupby("run")["val_perplexity"]
    runs = history.loc[of_run.idxmin()].assign(last=of_run.last().to_numpy())
    runs = runs[runs["last"] > _OVERFITTED * runs["val_perplexity"]]
    return runs.assign(label=runs["run"].map(labels)).to_dict("records")


def furthest_errors(errors: pd.DataFrame) -> Facts:
    """The errors furthest ahead, the smallest first; columns network, k, rmse."""
    furthest = errors[errors["k"] == errors["k"].max()]
    return furthest.sort_values("rmse", kind="stable").to_dict("records")


def best_truncation(trained: pd.DataFrame) -> Facts:
    """Which truncation is best on average, and what none gives; columns strategy, length,
    val_perplexity."""
    by_truncation = trained.groupby(["strategy", "length"], sort=False, as_index=False)
    means = by_truncation["val_perplexity"].mean()
    best = means.loc[means["val_perplexity"].idxmin()]
    full = means["val_perplexity"][means["strategy"] == "full"]
    return best.to_dict() | {"full": full.max()}
