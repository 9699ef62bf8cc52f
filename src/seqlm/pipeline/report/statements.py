"""Sentences about the main table that are stated only if the numbers support them."""

import textwrap
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.pipeline.evaluate.columns import aligned

_SHORT_TEXT = 1_000_000
"""Characters of train up to which it is said that the text is short."""
_COMPRESSORS = {"time_machine": (17_063, "PPMd needs 2.06, paq8px 1.94 and cmix 1.94")}
"""Corpus -> the characters of test, and what programs that compress text were measured to need for
them."""
_BOTH = ["val_bits", "test_bits"]


def read_main_table(layout: Layout) -> pd.DataFrame:
    """Return the main table. Raises DataError if it is missing or broken."""
    return read_csv(layout.reports("evaluate", "table.csv"))


def all_findings(table: pd.DataFrame) -> dict[str, str]:
    """Return the findings on the main table by subject; a finding that the numbers do not support
    is empty."""
    findings = {
        "best": best_finding,
        "memorising": memorising_finding,
        "learning": learning_finding,
    }
    return {name: finding(table) for name, finding in findings.items()}


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
    """Return which model of the main table is the best, and by how much it beats another one.

    The other one is the best on val of those that are something else: another smoothing or kind of
    token, another run, and for a mixture anything that is not a mixture.
    """
    best = table.iloc[0]
    if pd.isna(best["test_bits"]):
        return f"Best on val: {best['label']}, but it gives some token of the test text zero probability."
    static = table[~table["dynamic"]].dropna(subset=["test_bits"])
    where = "val" if (static["test_bits"] < best["test_bits"]).any() else "unseen text"
    sentence = f"Best on {where}: {best['label']}, with {best['test_bits']:.2f} bits per character"
    sentence += " on unseen text." if where == "val" else "."
    others = static[[_kind(row) != _kind(best) for row in static.to_dict("records")]]
    return f"{sentence} {_compared(best, others.sort_values('val_bits', kind='stable'))}".strip()


def _compared(best: pd.Series, others: pd.DataFrame) -> str:
    """Return how the best model compares with the first of some others, in a sentence."""
    if others.empty:
        return ""
    other = others.iloc[0]
    name = other["label"] + (" alone" if other["model"] in str(best["members"]).split() else "")
    gain, half = other["test_bits"] - best["test_bits"], other["best_margin"]
    if pd.isna(half):  # test is too short
        return f"Next on val: {name}, with {other['test_bits']:.2f}."
    digits = 2  # or more, until the two numbers differ, and the second is not 0
    while digits < 6 and (
        f"{abs(gain):.{digits}f}" == f"{half:.{digits}f}" or 0 < half < 0.5 * 10**-digits
    ):
        digits += 1
    amount = f"{abs(gain):.{digits}f} ± {half:.{digits}f}"
    if other["best_verdict"] == "not significant":
        return f"Its difference from {name}, {amount}, is not significant."
    return f"On the same text, {'it' if gain > 0 else name} is {amount} bits better than {name if gain > 0 else 'it'}."


def learning_finding(table: pd.DataFrame) -> str:
    """Return what the best model reaches that keeps learning while it predicts, if it is better
    than the best."""
    learning = table[table["dynamic"]].sort_values("val_bits", kind="stable")["test_bits"]
    if not len(learning) or not learning.iloc[0] < table["test_bits"].iloc[0]:
        return ""
    return (
        f"Not in the chart, because they see more text: models that keep learning from each piece of the unseen text "
        f"after predicting it reach {learning.iloc[0]:.2f}."
    )


def margin(row: Mapping[Any, Any] | pd.Series) -> str:
    """Return half the interval of a row of the main table, "" if it has none."""
    return "" if pd.isna(row["ci_low"]) else f"±{(row['ci_high'] - row['ci_low']) / 2:.2f}"


def _kind(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells a model from those that are the same thing with another order, epoch or
    member."""
    if row["family"] == "network":
        return "network", row["run"]
    return (
        ("mixture",)
        if row["family"] == "mixture"
        else (row["counted_token"], row["token"], row["smoothing"])
    )


def memoriser(table: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the static network whose bits on val most exceed those on its own text, if
    there is one."""
    networks = table[(table["family"] == "network") & ~table["dynamic"]]
    networks = networks.dropna(subset=["seen_bits", "val_bits", "test_bits"])
    gaps = networks["val_bits"] - networks["seen_bits"]
    return networks.loc[gaps.nlargest(1).index]


def three(models: Collection[str], table: pd.DataFrame) -> list[str]:
    """Return three of these models: the best n-gram model and network on val, and what memorised
    most."""
    rows = table[table["model"].isin(models) & ~table["dynamic"]].sort_values(
        "val_bits", kind="stable"
    )
    best = rows[rows["family"] != "mixture"].drop_duplicates("family")["model"]
    return list(dict.fromkeys([*best, *memoriser(rows)["model"], *rows["model"]]))[:3]


def guess(table: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the model for which all characters are equally likely, if there is one."""
    return table[(table["order"] == 0) & (table["token"] == "char")].head(1)


def memorising_finding(table: pd.DataFrame) -> str:
    """Return a sentence that says that a network memorised its text and predicts unseen text worse
    than a guess."""
    for row in memoriser(table).to_dict("records"):
        for guessed in guess(table)["test_bits"]:
            if row["test_bits"] > guessed > 2 * row["seen_bits"]:
                return (
                    f"Memorising is not learning: {row['label']} needs {row['seen_bits']:.2f} bits per character on "
                    f"the {row['train_chars']:,} characters that it was trained on, but {row['test_bits']:.2f} on "
                    f"unseen text, while guessing needs {guessed:.2f}."
                )
    return ""


def highlights(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the main table that answer most questions, in its order.

    The best mixture, network on all of train, n-gram model over words, the same and a Laplace model
    over characters, the uniform distribution, and the network that memorised most; best means best
    on val. Subwords take the place of words if these are not read as characters. Models that keep
    learning are left out.
    """
    static = (
        table[~table["dynamic"]]
        .dropna(subset=["test_bits"])
        .assign(order=table["order"].fillna(-1))
    )
    in_order = static.sort_values("val_bits", kind="stable")
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
        guess(static).index,
        memoriser(static).index,
    ]
    chosen = [in_order.index[in_order.index.isin(group)][0] for group in groups if len(group)]
    return table.loc[[label for label in table.index if label in chosen]]


def facts(table: pd.DataFrame, corpus: str, test: str) -> dict[str, Any]:
    """Return what the answers to a reader's questions depend on; a question without its fact is not
    asked.

    ``corpus`` is the name of the text, ``test`` its last part.
    """
    shown = highlights(table).sort_values("val_bits", kind="stable")
    ngrams, networks = (shown[shown["family"] == family] for family in ("ngram", "network"))
    packer = zlib.compressobj(9, wbits=31)
    packed = 8 * len(packer.compress(test.encode()) + packer.flush()) / max(len(test), 1)
    size, measured = _COMPRESSORS.get(corpus, (0, ""))
    counts_win = len(networks) and all(
        (ngrams[bits].head(1) < networks[bits].iloc[0]).any() for bits in _BOTH
    )
    is_short = counts_win and networks["train_chars"].iloc[0] <= _SHORT_TEXT
    return {
        "lstm": bool((shown["network"] == "lstm").any()),
        "ngrams": bool((ngrams["order"] > 0).any()),
        "kneser_ney": bool((shown["smoothing"] == "kneser-ney").any()),
        "short": int(networks["train_chars"].iloc[0]) if is_short else 0,
        "memorised": next(iter(memoriser(table).to_dict("records")), None)
        if memorising_finding(table)
        else None,
        "guessed": next(iter(guess(table)["test_bits"]), 0.0),
        "packed": packed,
        "compressors": measured if len(test) == size else "",
    }


def summary_text(table: pd.DataFrame) -> str:
    """Return the models of the chart, and the findings, as plain text for a terminal."""
    rows = [["bits per character (lower is better)", "unseen text", "", "training text"]]
    for row in highlights(table).to_dict("records"):
        seen = "" if pd.isna(row["seen_bits"]) else f"{row['seen_bits']:.2f}"
        rows.append([row["label"], f"{row['test_bits']:.2f}", margin(row), seen])
    findings = [textwrap.fill(found, 100) for found in all_findings(table).values() if found]
    return "\n".join([*aligned(rows, (False, True, True, True)), "", *findings, ""])
