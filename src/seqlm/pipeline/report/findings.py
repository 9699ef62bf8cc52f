"""What the main table shows, for statements that are made only if the numbers support them;
``findings.html`` has the words."""

from collections.abc import Collection
from typing import Any

import pandas as pd

from seqlm.pipeline.report.formats import decimals, half_width, plus_minus
from seqlm.pipeline.report.main_table import aligned

_SHORT_TEXT = 1_000_000
"""Largest training split, in characters, that is called short."""
_MAX_DIGITS = 6
_KIND = ["family", "run", "token", "counted_token", "smoothing"]
"""Columns that are equal for models that differ only in their order, epoch or members."""

Findings = dict[str, Any]


def all_findings(table: pd.DataFrame) -> Findings:
    """Macro of ``findings.html`` -> what it takes."""
    return {
        "best_model": best_model(table),
        "memorising": memorising_network(table),
        "worse": worse_networks(table),
        "dynamic": bits_of_better_dynamic_model(table),
    }


def best_model(table: pd.DataFrame) -> Findings:
    """The best model, and by how much it beats its rival."""
    best, static = table.iloc[0], table[~table["dynamic"]]
    rival = next((row for _, row in rival_row(table).iterrows()), None)
    return {
        "best": best,
        "is_best_on_test": not (static["test_bits"] < best["test_bits"]).any(),
        "rival": None if pd.isna(best["test_bits"]) else rival,
        "difference": "" if rival is None else _difference(rival),
    }


def rival_row(table: pd.DataFrame) -> pd.DataFrame:
    """The static model of another kind than the best one that is best on val, if there is one."""
    static = table[~table["dynamic"]].dropna(subset=["test_bits"])
    kinds = static[_KIND].astype(object).fillna("")
    best = table.iloc[0][_KIND].fillna("")
    return best_first(static[(kinds != best).any(axis=1)]).head(1)


def best_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the main table, or some of them, by their bits on val."""
    return table.sort_values("val_bits", kind="stable")


def _difference(row: pd.Series) -> str:
    """A model's difference from the best one with its margin, "" if the test split is too short."""
    size, margin = abs(row["best_difference"]), row["best_margin"]
    return "" if pd.isna(margin) else plus_minus(size, margin, _needed_digits(size, margin))


def _needed_digits(value: float, margin: float) -> int:
    """At least two digits: as many as show that the numbers differ and the margin is not 0."""
    for digits in range(2, _MAX_DIGITS):
        is_distinct = f"{value:.{digits}f}" != f"{margin:.{digits}f}"
        if is_distinct and not 0 < margin < 0.5 * 10**-digits:
            return digits
    return _MAX_DIGITS


def bits_of_better_dynamic_model(table: pd.DataFrame) -> float | None:
    """What the best dynamic model reaches, if it is better than the best static one."""
    bits = best_first(table[table["dynamic"]])["test_bits"].head(1)
    return next(iter(bits[bits < table["test_bits"].iloc[0]]), None)


def most_overfitted_row(table: pd.DataFrame) -> pd.DataFrame:
    """The static network whose validation bits most exceed its training bits, if there is one."""
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    networks = networks.dropna(subset=["seen_bits", "val_bits", "test_bits"])
    gaps = networks["val_bits"] - networks["seen_bits"]
    return networks.loc[gaps.nlargest(1).index]


def uniform_row(table: pd.DataFrame) -> pd.DataFrame:
    """The model for which all characters are equally likely, if there is one."""
    return table[(table["order"] == 0) & (table["token"] == "char")].head(1)


def showcase_models(models: Collection[str], table: pd.DataFrame) -> list[str]:
    """At most three static models: the best n-gram model and network, and the most overfitted."""
    rows = best_first(table[table["model"].isin(models) & ~table["dynamic"]])
    best = rows[rows["family"] != "mixture"].drop_duplicates("family")["model"]
    return list(dict.fromkeys([*best, *most_overfitted_row(rows)["model"], *rows["model"]]))[:3]


def memorising_network(table: pd.DataFrame) -> Findings | None:
    """The network that memorized its text and predicts unseen text worse than a guess."""
    networks = _worse_than_guessing(most_overfitted_row(table), table)
    memorised = networks[networks["test_bits_of_guess"] > 2 * networks["seen_bits"]]
    return next(iter(memorised.to_dict("records")), None)


def worse_networks(table: pd.DataFrame) -> list[Findings]:
    """Which other networks predict unseen text worse than a guess."""
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    memorised = memorising_network(table) or {"model": ""}
    others = networks[networks["model"] != memorised["model"]]
    return list(_worse_than_guessing(others, table).to_dict("records"))


def _worse_than_guessing(networks: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    guess = uniform_row(table)[["test_bits"]]
    pairs = networks.merge(guess, how="cross", suffixes=("", "_of_guess"))
    return pairs[pairs["test_bits"] > pairs["test_bits_of_guess"]]


def chart_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The static models that answer most questions, in the order of the main table.

    The best model and its rival, the best mixture, network on the full training split, word-level
    n-gram model, the same and a Laplace model over characters, the uniform distribution, and the
    most overfitted network; best means best on val. Subwords take the place of words if these are
    not read as characters.
    """
    static = table[~table["dynamic"]].dropna(subset=["test_bits"])
    static = static.assign(order=static["order"].fillna(-1))
    mixtures = static[static["family"] == "mixture"]
    networks = static[static["family"] == "network"]
    ngrams = static[(static["family"] == "ngram") & (static["order"] > 0)]
    by_word = ngrams["counted_token"] != ngrams["token"]
    chars = ngrams["token"] == "char"
    groups = [
        static.head(1),
        rival_row(table),
        mixtures,
        networks[networks["train_chars"] == static["train_chars"].max()],
        ngrams[by_word if by_word.any() else ngrams["token"] == "subword"],
        ngrams[chars & ~by_word],
        ngrams[chars & (ngrams["smoothing"] == "laplace")],
        uniform_row(static),
        most_overfitted_row(static),
    ]
    chosen = {best_first(group).index[0] for group in groups if len(group)}
    return table[table.index.isin(chosen)]


def short_text_size(table: pd.DataFrame) -> int:
    """Characters of a short training text on which counts beat a network; 0 if they do not, or for
    another reason: a network that lacks text predicts the text that it has seen better than counts
    do."""
    chart = best_first(chart_rows(table))
    ngrams, networks = chart[chart["family"] == "ngram"], chart[chart["family"] == "network"]
    if ngrams.empty or networks.empty:
        return 0
    size = int(networks["train_chars"].iloc[0])
    bits = ["val_bits", "test_bits"]
    counts_win = (ngrams[bits].iloc[0] < networks[bits].iloc[0]).all()
    has_learned = networks["seen_bits"].iloc[0] < ngrams["val_bits"].iloc[0]
    return size if counts_win and has_learned and size <= _SHORT_TEXT else 0


def chart_text(table: pd.DataFrame) -> str:
    """The models of the chart as plain text."""
    rows = [
        [row.label, decimals(row.test_bits), half_width(row), decimals(row.seen_bits)]
        for row in chart_rows(table).itertuples()
    ]
    heading = ["bits per character (lower is better)", "unseen text", "", "training text"]
    return "\n".join(aligned([heading, *rows]))
