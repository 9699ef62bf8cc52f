"""Findings for the captions of the page: sentences that are stated only if the numbers support them."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout

_ZIPF_EXPONENTS = (0.8, 1.2)
_HEAPS_EXPONENTS = (0.05, 0.95)
_CLEARLY = 0.02
"""Bits per character."""
_OVERFITTED = 1.1
"""A run is overfitted if its last perplexity on val is higher than its best one by this factor."""


def all_findings(layout: Layout) -> dict[str, str]:
    """Return the findings by subject; a finding that the numbers do not support is empty."""
    evaluate, words = layout.reports("evaluate"), read_json(layout.reports("ngrams", "word", "summary.json"))
    vocab = read_json(layout.reports("vocab", "word", "summary.json"))
    return {
        "zipf": zipf_finding(words["zipf"]),
        "growth": growth_finding(words["heaps_beta"], vocab["test"]["unknown_share"]),
        "smoothing": smoothing_finding(read_csv(evaluate / "orders.csv")),
        "classes": class_finding(read_csv(evaluate / "classes.csv")),
        "overfitting": overfitting_finding(read_csv(evaluate / "history.csv")),
        "radius": radius_finding(read_json(layout.reports("gradients", "summary.json"))["spectral_radius"]),
        **leader_findings(read_json(evaluate / "leaders.json")),
        "sine": sine_finding(read_json(layout.reports("sine", "summary.json"))["rmse"]),
        "data": data_finding(read_csv(layout.benchmark("curves_data.csv"))),
        "time": time_finding(read_csv(layout.benchmark("curves_time.csv"))),
    }


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


def zipf_finding(fits: Mapping[str, Mapping[str, Any]]) -> str:
    """Return whether words follow Zipf's law; ``fits``: n -> the fit of n-grams, if there is one."""
    low, high = _ZIPF_EXPONENTS
    if "1" in fits and low <= fits["1"]["alpha_likelihood"] <= high:
        return "The words of this text roughly follow Zipf’s law."
    return ""


def growth_finding(beta: float | None, unknown_share: float) -> str:
    """Return how new words keep coming; ``unknown_share`` is the share of the words of test that train lacks."""
    sentences = []
    low, high = _HEAPS_EXPONENTS
    if beta is not None and beta >= high:
        sentences.append("Almost all words are new, however long the text is.")
    elif beta is not None and beta > low:
        sentences.append("New words keep coming, but ever more slowly.")
    if unknown_share > 0:
        sentences.append(f"In test, {unknown_share:.1%} of the words do not occur in train.")
    return " ".join(sentences)


def smoothing_finding(orders: pd.DataFrame) -> str:
    """Return which smoothing method is the best for every kind of token, if one is.

    ``orders`` has the columns token, smoothing, order, bits_per_character.
    """
    if orders["smoothing"].nunique() < 2:
        return ""
    best = orders.sort_values("bits_per_character").groupby("token").head(1)["smoothing"].unique()
    return f"For every kind of token, the best model on test uses {best[0]} smoothing." if len(best) == 1 else ""


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
    return f"Overfitted at the end, with rising perplexity on val: {', '.join(runs)}." if runs else ""


def radius_finding(spectral_radius: Mapping[str, Mapping[str, float]]) -> str:
    """Return what spectral radii above 1 mean; ``spectral_radius``: model -> moment of training -> value."""
    if models := [model for model, radius in spectral_radius.items() if radius["trained"] > 1]:
        return (
            f"A spectral radius above 1 after training ({', '.join(models)}) would make the gradients of a linear "
            "network explode; here only the slopes of the activation keep them small."
        )
    return ""


def sine_finding(rmse: Mapping[str, float]) -> str:
    """Return whether predictions get worse with the number of steps; ``rmse`` has rising numbers of steps."""
    errors = list(rmse.values())
    rises = len(errors) > 1 and all(nearer < further for nearer, further in pairwise(errors))
    return "The further ahead, the larger the error." if rises else ""


def data_finding(curves: pd.DataFrame) -> str:
    """Return from how much text on the best network beats the best n-gram model, and whether mixtures beat both.

    ``curves`` has the columns corpus, family, train_chars, test_bits. Sizes that lack a family are left out. To beat is
    to need at least 0.02 bits less: smaller differences may be chance.
    """
    sentences, mixture_wins = [], True
    for corpus, rows in curves.groupby("corpus", sort=False):
        best = rows.pivot_table(index="train_chars", columns="family", values="test_bits", aggfunc="min")
        best = best.reindex(columns=["ngram", "network", "mixture"]).dropna()
        wins_from_here = (best["network"] < best["ngram"] - _CLEARLY)[::-1].cummin()[::-1]
        if wins_from_here.any():
            first = f"{wins_from_here.idxmax():,} characters"
            sentences.append(f"On {corpus}, the best network beats the best n-gram model from {first} on.")
        elif len(best) and (best["ngram"] < best["network"] - _CLEARLY).all():
            last = f"{best.index.max():,} characters"
            sentences.append(f"On {corpus}, the best n-gram model beats the best network up to {last}.")
        mixture_wins &= bool((best["mixture"] < best[["ngram", "network"]].min(axis=1) - _CLEARLY).all())
    if mixture_wins and sentences:
        sentences.append("A mixture of both is better than either.")
    return " ".join(sentences)


def time_finding(curves: pd.DataFrame) -> str:
    """Return which training ends with the fewest bits on each corpus; columns corpus, model, seconds, val_bits."""
    sentences = []
    for corpus, rows in curves.groupby("corpus", sort=False):
        ends = rows.sort_values("seconds").groupby("model").tail(1)
        if len(ends) > 1:
            best = ends.sort_values("val_bits").iloc[0]
            sentences.append(f"On {corpus}, {best['model']} ends with the fewest bits, {best['val_bits']:.2f}.")
    return " ".join(sentences)
