"""The main table: one list of columns for table.csv, summary.txt and the page.

To add a column, add an entry to :data:`COLUMNS`; nothing else needs to know.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from seqlm.pipeline.evaluate.ranking import Result
from seqlm.pipeline.score.scores import TRAIN_SUBSET
from seqlm.vocab.corpus import SPLITS

DIGITS = 2
"""Digits after the decimal point with which bits per character are printed: more are not certain
for every network."""

Cells = Mapping[str, Any]
"""A row of table.csv: column -> value; missing values are None or nan."""


@dataclass(frozen=True)
class Column:
    """A column of table.csv, and how it is shown."""

    name: str
    meaning: str
    value: Callable[[Result], object] | None
    """From a result to the value in table.csv, which may be None; None: the property of the model
    with this name."""
    dtype: type = float
    heading: str = ""
    """In the main table as text and on the page; a column without a heading is in table.csv
    only."""
    show: Callable[[Cells], str] | None = None
    """From a row to the text of the cell; by default fractions have :data:`DIGITS` digits."""
    in_text: bool = True
    """Whether the main table as text has the column too."""

    @property
    def is_number(self) -> bool:
        """Whether the column is aligned to the right."""
        return self.dtype in (float, int)

    def cell(self, row: Cells) -> str:
        """Return what the table as text and the page show."""
        if self.show is not None:
            return self.show(row)
        value = row[self.name]
        if pd.isna(value):
            return "-" if self.is_number else ""
        if self.dtype is int:
            return f"{int(value):,}"
        return f"{value:.{DIGITS}f}" if self.dtype is float else str(value)


def _val_with_mark(row: Cells) -> str:
    if pd.isna(row["val_bits"]):
        return "-"
    return f"{'^' if row['chosen_on_val'] else ''}{row['val_bits']:.{DIGITS}f}"


def _interval(row: Cells) -> str:
    return "" if pd.isna(row["ci_low"]) else f"±{(row['ci_high'] - row['ci_low']) / 2:.{DIGITS}f}"


def _or_infinite(name: str, digits: int) -> Callable[[Cells], str]:
    """Return a function that shows a value, very large ones as powers of ten."""

    def show(row: Cells) -> str:
        value = row[name]
        if pd.isna(value):
            return "infinite"
        return f"{value:.{digits}f}" if value < 1e9 else f"{value:.1e}"

    return show


def _difference(row: Cells) -> str:
    if pd.isna(row["best_difference"]):
        return ""
    mark = "~ " if row["best_verdict"] == "not significant" else ""
    return f"{mark}{row['best_difference']:+.3f}".replace("-", "−") + f" ±{row['best_margin']:.3f}"


COLUMNS = [
    Column(
        "model",
        "Identifier: what is typed, and what files are called.",
        lambda r: r.scores.name,
        str,
    ),
    Column(
        "label",
        "A readable name, which says what the model is.",
        lambda r: r.label,
        str,
        "model",
        in_text=False,
    ),
    Column("family", "ngram, network or mixture.", None, str),
    Column("token", "Kind of token that the model predicts.", None, str),
    Column("counted_token", "N-gram models: kind of token whose n-grams are counted.", None, str),
    Column("smoothing", "N-gram models: smoothing method.", None, str),
    Column("order", "N-gram models: order, 0 for the uniform distribution.", None, int),
    Column("network", "Networks: kind of network.", None, str),
    Column("run", "Networks: the run.", None, str),
    Column(
        "as_in_chapter",
        "Networks: whether all settings are those of sections 8.5 and 8.6.",
        None,
        bool,
    ),
    Column(
        "epoch",
        "Networks: whether the weights are the last ones, or those that were best on val.",
        None,
        str,
    ),
    Column(
        "dynamic",
        "Whether the model keeps learning from the text that it predicts. Such rows come after the "
        "others.",
        None,
        bool,
    ),
    Column(
        "members",
        "Mixtures: the members, separated by spaces. Dynamic models: the static one.",
        lambda r: " ".join(r.scores.info.members) or None,
        str,
    ),
    Column(
        "test_bits",
        "Bits per character on test; infinite if a token has probability zero.",
        lambda r: r.bits("test"),
        float,
        "test",
        _or_infinite("test_bits", DIGITS),
    ),
    Column(
        "ci_low",
        "Lower end of the 95 % interval of test_bits; none if it would be below 0.",
        lambda r: r.interval[0],
        float,
        "95 %",
        _interval,
    ),
    Column("ci_high", "Upper end of the 95 % interval of test_bits.", lambda r: r.interval[1]),
    Column(
        "best_difference",
        "Bits per character on test minus those of the best model, which is in the first row.",
        lambda r: r.vs_best.difference,
        float,
        "to best",
        _difference,
    ),
    Column(
        "best_margin",
        "Half-width of the simultaneous 95 % confidence interval of best_difference.",
        lambda r: r.vs_best.margin,
    ),
    Column(
        "best_verdict",
        "Whether the model is better or worse than the best model, or the difference is not "
        "significant.",
        lambda r: r.vs_best.verdict,
        str,
    ),
    Column(
        "val_bits",
        "Bits per character on val; marked ^ if the model has chosen_on_val.",
        lambda r: r.bits("val"),
        float,
        "val",
        _val_with_mark,
    ),
    Column(
        "chosen_on_val",
        "Whether settings, weights or the epoch of the model were chosen on val, so that it looks "
        "better there than it is.",
        None,
        bool,
    ),
    Column(
        "train_bits",
        "Bits per character on all of train.",
        lambda r: r.bits("train"),
        float,
        "train",
    ),
    Column(
        "seen_bits",
        "Bits per character on the text that the model was trained on, measured after training.",
        lambda r: r.bits(TRAIN_SUBSET if TRAIN_SUBSET in r.scores.metrics else "train"),
        float,
        "trained on",
        in_text=False,
    ),
    Column(
        "train_chars",
        "Characters of train that the model saw.",
        None,
        int,
        "train characters",
        in_text=False,
    ),
    Column(
        "test_perplexity",
        "Perplexity on test, per token of the model's own kind.",
        lambda r: r.scores.metrics["test"]["perplexity"],
        float,
        "perplexity",
        _or_infinite("test_perplexity", 2),
    ),
    Column(
        "unknown_share",
        "Share of test tokens not in the vocabulary.",
        lambda r: r.scores.metrics["test"]["unknown_share"],
    ),
]
"""All columns, in their order in table.csv."""


def main_table(results: Sequence[Result]) -> pd.DataFrame:
    """Return one row for each result, with the columns of :data:`COLUMNS`."""
    dtypes = {float: np.float64, int: "Int64", bool: bool, str: object}
    found = {}
    for column in COLUMNS:
        value = column.value or attrgetter(f"scores.info.{column.name}")
        found[column.name] = pd.Series(
            [value(result) for result in results], dtype=dtypes[column.dtype]
        )
    return pd.DataFrame(found)


def table_groups(table: pd.DataFrame) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows of the main table in groups that are not empty, each with its heading.

    The first, without a heading, has the models that stay as they were trained. Then come those
    that keep learning.
    """
    dynamic = table["dynamic"]
    heading = (
        "still learning: after predicting a piece of the test text, these models learn from it"
    )
    groups = {"": ~dynamic, heading: dynamic}
    return [
        (heading, table[mask].to_dict("records")) for heading, mask in groups.items() if mask.any()
    ]


_NOTES = (
    "test, val, train: bits per character; models over words are charged for spaces and for the "
    "spelling",
    "  of unknown words; lower is better",
    "95 %: half-width of the prediction interval for another passage as long as test (not for "
    "other",
    "  texts or seeds); empty if it would exceed the value, because parts of this text differ too "
    "much",
    "to best: difference on test from the model in the first row, which is the best on val among "
    "those",
    "  that stay as trained, ± half-width of its simultaneous 95 % confidence interval",
    "  ~: not significant; the risk that any difference is wrongly called significant is at most "
    "5 %",
)
_CHOSEN = (
    "^: settings, weights or the epoch were chosen on val, so the model looks better there than "
    "it is"
)
_IDENTIFIER = Column("model", "What is typed.", lambda r: r.scores.name, str, "model")


def table_text(table: pd.DataFrame, *remarks: str) -> str:
    """Return the table as plain text of at most 100 columns, followed by the ``remarks`` that are
    not empty.

    A model has its identifier, which is what is typed.
    """
    columns = [_IDENTIFIER, *(column for column in COLUMNS if column.heading and column.in_text)]
    groups = table_groups(table)
    rows = [[column.heading for column in columns]]
    rows += [[column.cell(row) for column in columns] for _, of_group in groups for row in of_group]
    lines = aligned(rows, [column.is_number for column in columns])
    heading, last_group = groups[-1]
    if heading:
        lines.insert(len(lines) - len(last_group), f"{heading}:")
    lines += _NOTES
    lines += [_CHOSEN] if table["chosen_on_val"].any() else []
    lines += filter(None, remarks)
    return "\n".join(lines) + "\n"


def aligned(rows: Sequence[Sequence[str]], is_number: Sequence[bool]) -> list[str]:
    """Return lines of text with the cells of each column below one another, those of numbers
    aligned to the right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in rows
    ]


def describe_share(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return how much of each split was scored, "" if it was all; ``metrics``: model -> split ->
    metrics."""
    shares = {
        split: of_model[split]["scored_share"]
        for of_model in metrics.values()
        for split in of_model
    }
    if all(shares[split] == 1 for split in SPLITS):
        return ""
    listed = ", ".join(f"{shares[split]:.2%} of {split}" for split in SPLITS)
    return f"scored: {listed}, in evenly spaced passages"
