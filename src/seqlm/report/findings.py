"""Findings for the captions of the page: sentences that are stated only if the numbers support them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout

_OVERFITTED = 1.1
"""A run is overfitted if its last perplexity on val is higher than its best one by this factor."""


def all_findings(layout: Layout) -> dict[str, str]:
    """Return the findings by subject; a finding that the numbers do not support is empty."""
    evaluate = layout.reports("evaluate")
    return {
        "classes": class_finding(read_csv(evaluate / "classes.csv")),
        "overfitting": overfitting_finding(read_csv(evaluate / "history.csv")),
        **leader_findings(read_json(evaluate / "leaders.json")),
    }


def replaced_corpus(record: Mapping[str, Any]) -> str:
    """Return what to do if the sample replaced the corpus that was asked for, "" if it did not.

    ``record`` is what the stage ``download`` writes about the corpus.
    """
    if not record["fallback"]:
        return ""
    return (
        f"This is not the corpus that was asked for: {record['reason']}, so these are the results of "
        f"{record['name']}, a short text. To get {record['requested']}, go online, or set SEQLM_DATA_DIR to a folder "
        "with its file; then type make repro. To go back to the results of the last commit, type make restore."
    )


def leader_findings(leaders: Mapping[str, Mapping[str, Any] | None]) -> dict[str, str]:
    """Return which model is the best of each group, by how much, and how certain that is.

    ``leaders`` are those of :func:`seqlm.evaluate.ranking.rank_models`.
    """
    introductions = {
        "static": "Unseen text is predicted best by",
        "dynamic": "Among models that keep learning while they predict the test text (dynamic evaluation), the best is",
        "ngram": "The best n-gram model is",
    }
    return {
        group: f"{introductions[group]} {_describe_leader(leader)}" if leader else ""
        for group, leader in leaders.items()
    }


def _describe_leader(leader: Mapping[str, Any]) -> str:
    """Return a leader's bits on test, how it compares, and what test would choose."""
    if leader["bits"] is None:
        sentences = [f"{leader['model']}, but it gives some token of test zero probability."]
    else:
        low, high = leader["ci_low"], leader["ci_high"]
        interval = "" if low is None else f" (95 % interval {low:.3f} to {high:.3f})"
        sentences = [f"{leader['model']}, with {leader['bits']:.3f} bits per character on test{interval}."]
    if leader["verdict"] in ("better", "worse"):
        amount = f"{abs(leader['difference']):.3f} ± {leader['margin']:.3f}"
        sentences.append(f"It is significantly {leader['verdict']} than {leader['against']}, by {amount}.")
    elif leader["verdict"]:
        amount = f"{leader['difference']:+.3f} ± {leader['margin']:.3f}"
        sentences.append(f"The difference from {leader['against']} is not significant ({amount}).")
    if leader["best_on_test"]:
        bits = leader["best_on_test_bits"]
        sentences.append(f"(Val chose this model; on test, {leader['best_on_test']} is best, with {bits:.3f}.)")
    return " ".join(sentences)


def highlights(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the main table that answer most questions, best on test first.

    The best static and dynamic mixture, the best network, the best n-gram model over each kind of token, the best
    Laplace model, the best network trained on less text than others, also after its last epoch, and the uniform
    distribution over characters; best means best on val. Models that predict only words are left out.
    """
    rows = table[~table["only_words"]].dropna(subset=["test_bits"]).assign(order=table["order"].fillna(-1))
    static, in_order = rows[~rows["dynamic"]], rows.sort_values("val_bits", kind="stable")
    networks, ngrams = static["family"] == "network", (static["family"] == "ngram") & (static["order"] > 0)
    short = networks & (static["train_chars"] < static["train_chars"].max())
    groups = [
        rows.index[(rows["family"] == "mixture") & rows["dynamic"]],
        static.index[static["family"] == "mixture"],
        static.index[networks & ~short],
        *static[ngrams].groupby(["token", "counted_token"]).groups.values(),
        static.index[ngrams & (static["smoothing"] == "laplace")],
        static.index[short],
        static.index[short & (static["epoch"] == "last")],
        static.index[(static["order"] == 0) & (static["token"] == "char")],
    ]
    chosen = [in_order.index[in_order.index.isin(group)][0] for group in groups if len(group)]
    return table.loc[[label for label in table.index if label in chosen]]


def class_finding(classes: pd.DataFrame) -> str:
    """Return which class of character costs the best model most; columns model, token_class, share, bits."""
    if classes.empty:
        return ""
    model = classes["model"].iloc[0]
    costliest = classes[classes["model"] == model].sort_values("bits").iloc[-1]
    finding = (
        f"The costliest class for {model} is “{costliest['token_class']}”: {costliest['bits']:.2f} bits on average."
    )
    if costliest["token_class"] == "first letter":
        finding += " Which word comes next is hard to predict; its remaining letters are easier."
    return finding


def overfitting_finding(history: pd.DataFrame) -> str:
    """Return which runs were overfitted at the end; columns run, epoch, train_perplexity, val_perplexity."""
    runs = []
    for run, rows in history.groupby("run", sort=True):
        val = rows["val_perplexity"].dropna()
        if not val.empty and val.iloc[-1] > _OVERFITTED * val.min():
            runs.append(str(run))
    return f"These runs overfit; their perplexity on val rises towards the end: {', '.join(runs)}." if runs else ""
