"""Findings for the captions of the page: sentences that are stated only if the numbers support them."""

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from seqlm.evaluate.columns import aligned


def all_findings(table: pd.DataFrame) -> dict[str, str]:
    """Return the findings on the main table by subject; a finding that the numbers do not support is empty."""
    return {"best": best_finding(table), "memorising": memorising_finding(table)}


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


def best_finding(table: pd.DataFrame) -> str:
    """Return which model of the main table is the best, how certain that is, and by how much it beats another one.

    The other one is the best on val of those that are something else: another smoothing or kind of token, another run,
    and for a mixture anything that is none.
    """
    best = table.iloc[0]
    if pd.isna(best["test_bits"]):
        return f"Best on val: {best['label']}, but it gives some token of the test text zero probability."
    full = table[~table["dynamic"]].dropna(subset=["test_bits"])
    where = "val" if (full["test_bits"] < best["test_bits"]).any() else "unseen text"
    sentence = f"Best on {where}: {best['label']}, with {best['test_bits']:.2f} bits per character"
    sentence += " on unseen text" if where == "val" else ""
    sentence += f" ({margin} for another passage)." if (margin := _margin(best)) else "."
    others = full[[_kind(row) != _kind(best) for row in full.to_dict("records")]]
    if len(others):
        sentence += f" {_compared(best, others.sort_values('val_bits', kind='stable').iloc[0])}"
    learning = table[table["dynamic"]].sort_values("val_bits", kind="stable")["test_bits"]
    if not best["dynamic"] and len(learning) and learning.iloc[0] < best["test_bits"]:
        sentence += f" Models that keep learning, a group of their own, reach {learning.iloc[0]:.2f}."
    return sentence


def _compared(best: pd.Series, other: pd.Series) -> str:
    """Return how the best model compares with another one, in a sentence."""
    alone = " alone" if other["model"] in str(best["members"]).split() else ""
    name, gain = f"{other['label']}{alone}", other["test_bits"] - best["test_bits"]
    if pd.isna(other["best_margin"]):  # test is too short
        return f"Next on val: {name}, with {other['test_bits']:.2f}."
    margin = other["best_margin"]
    digits = min(max(math.ceil(-math.log10(2 * margin)), 2), 6) if margin > 0 else 2  # so many that it is not 0
    amount = f"{abs(gain):.{digits}f} ± {margin:.{digits}f}"
    if other["best_verdict"] == "not significant":
        return f"On the same text, its difference from {name}, {amount}, is not significant."
    return f"On the same text, {f'it is {amount} better than {name}' if gain > 0 else f'{name} is {amount} better'}."


def _margin(row: pd.Series) -> str:
    return "" if pd.isna(row["ci_low"]) else f"±{(row['ci_high'] - row['ci_low']) / 2:.2f}"


def _kind(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells a model from those that are the same thing with another order, epoch or member."""
    if row["family"] == "network":
        return "network", row["run"]
    return ("mixture",) if row["family"] == "mixture" else (row["counted_token"], row["token"], row["smoothing"])


def memoriser(table: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the static network whose bits on val most exceed those on its own text, if there is one."""
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    networks = networks.dropna(subset=["seen_bits", "val_bits", "test_bits"])
    gaps = networks["val_bits"] - networks["seen_bits"]
    return networks.loc[gaps.nlargest(1).index]


def memorising_finding(table: pd.DataFrame) -> str:
    """Return that a network memorised its text and predicts unseen text worse than a guess, if one does."""
    guess = table[(table["order"] == 0) & (table["token"] == "char")]
    for row in memoriser(table).to_dict("records"):
        if len(guess) and row["test_bits"] > (guessed := guess["test_bits"].iloc[0]) > 2 * row["seen_bits"]:
            return (
                f"Memorising is not learning: {row['label']} needs {row['seen_bits']:.2f} bits per character on the "
                f"{row['train_chars']:,} characters that it was trained on, but {row['test_bits']:.2f} on unseen text, "
                f"while guessing needs {guessed:.2f}."
            )
    return ""


def highlights(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the main table that answer most questions, in its order.

    The best mixture, network on all of train, n-gram model over words, the same and a Laplace model over characters,
    the uniform distribution, the network that memorised most, and the best model that keeps learning; best means best
    on val. Subwords take the place of words if these are not read as characters. Models that predict only words are
    left out.
    """
    rows = table.dropna(subset=["test_bits"]).assign(order=table["order"].fillna(-1))
    static, in_order = rows[~rows["dynamic"]], rows.sort_values("val_bits", kind="stable")
    ngrams = static[(static["family"] == "ngram") & (static["order"] > 0)]
    networks = static[static["family"] == "network"]
    by_word = ngrams["counted_token"] != ngrams["token"]
    groups = [
        static.index[:1],
        static.index[static["family"] == "mixture"],
        networks.index[networks["train_chars"] == static["train_chars"].max()],
        ngrams.index[by_word if by_word.any() else ngrams["token"] == "subword"],
        ngrams.index[(ngrams["token"] == "char") & ~by_word],
        ngrams.index[(ngrams["token"] == "char") & (ngrams["smoothing"] == "laplace")],
        static.index[(static["order"] == 0) & (static["token"] == "char")],
        memoriser(rows).index,
        rows.index[rows["dynamic"]],
    ]
    chosen = [in_order.index[in_order.index.isin(group)][0] for group in groups if len(group)]
    return table.loc[[label for label in table.index if label in chosen]]


def summary_text(table: pd.DataFrame) -> str:
    """Return the models of the chart, and the findings, as plain text for a terminal."""
    rows = [["bits per character (lower is better)", "unseen text", "", "own text"]]
    for row in highlights(table).to_dict("records"):
        seen = "" if pd.isna(row["seen_bits"]) else f"{row['seen_bits']:.2f}"
        rows.append([row["label"], f"{row['test_bits']:.2f}", _margin(row), seen])
    findings = [textwrap.fill(found, 100) for found in all_findings(table).values() if found]
    return "\n".join([*aligned(rows, (False, True, True, True)), "", *findings, ""])
