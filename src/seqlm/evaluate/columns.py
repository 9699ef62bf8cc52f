"""The columns of the main table: one list for table.csv, the terminal and the page.

To add a column, add an entry to :data:`COLUMNS`; nothing else needs to know.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seqlm.evaluate.uncertainty import Bootstrap
from seqlm.score.store import TRAIN_SUBSET, Score

DIGITS = 3
"""Digits after the decimal point with which bits per character are printed."""
Cells = Mapping[str, Any]
"""A row of table.csv: column -> value; missing values are None or nan."""


@dataclass(frozen=True)
class Result:
    """A model's score, how certain it is, and how it compares."""

    score: Score
    bootstrap: Bootstrap | None
    """None if the model gives a token of test no probability."""
    against_next: str | None = None

    def bits(self, split: str) -> float | None:
        """Return bits per character on a split, if the model was scored on it and they are finite."""
        value: float | None = self.score.metrics.get(split, {}).get("bits_per_character")
        return value

    def compare(self, other: "Result") -> str | None:
        """Return whether this model is "better", "worse", "equal" or "not told apart" from another one on test.

        A difference that the printed numbers do not show counts as equal. None if one of the two is infinite.
        """
        if self.bootstrap is None or other.bootstrap is None:
            return None
        verdict = self.bootstrap.compare(other.bootstrap)
        printed = [f"{result.bits('test'):.{DIGITS}f}" for result in (self, other)]
        return "equal" if verdict != "not told apart" and printed[0] == printed[1] else verdict


@dataclass(frozen=True)
class Column:
    """A column of table.csv, and how it is shown."""

    name: str
    meaning: str
    value: Callable[[Result], object]
    """From a result to the value in table.csv; None if there is none."""
    dtype: type = float
    heading: str = ""
    """In the terminal and on the page; a column without a heading is in table.csv only."""
    show: Callable[[Cells], str] | None = None
    """From a row to the text of the cell; by default fractions have :data:`DIGITS` digits."""
    in_terminal: bool = True

    @property
    def is_number(self) -> bool:
        """Whether the terminal and the page align the column to the right."""
        return self.dtype in (float, int)

    def cell(self, row: Cells) -> str:
        """Return what the terminal and the page show."""
        if self.show is not None:
            return self.show(row)
        value = row[self.name]
        if is_missing(value):
            return "-" if self.is_number else ""
        if self.dtype is int:
            return f"{int(value):,}"
        return f"{value:.{DIGITS}f}" if self.dtype is float else str(value)


def is_missing(value: object) -> bool:
    """Return whether a cell of a table is empty."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _name_with_mark(row: Cells) -> str:
    return f"{row['model']} *" if row["dynamic"] else str(row["model"])


def _interval(row: Cells) -> str:
    return "" if is_missing(row["low"]) else f"{row['low']:.{DIGITS}f}-{row['high']:.{DIGITS}f}"


def _or_infinite(name: str, digits: int) -> Callable[[Cells], str]:
    return lambda row: "infinite" if is_missing(row[name]) else f"{row[name]:.{digits}f}"


COLUMNS = [
    Column("model", "Name; an asterisk marks dynamic models.", lambda r: r.score.name, str, "model", _name_with_mark),
    Column("family", "ngram, network or mixture.", lambda r: r.score.info.family, str),
    Column("token", "Kind of token that the model predicts.", lambda r: r.score.info.token, str),
    Column("counted_token", "N-gram models: kind of token whose n-grams are counted.",
           lambda r: r.score.info.counted_token, str),
    Column("smoothing", "N-gram models: smoothing method.", lambda r: r.score.info.smoothing, str),
    Column("order", "N-gram models: order, 0 for the uniform distribution.", lambda r: r.score.info.order, int),
    Column("network", "Networks: kind of network.", lambda r: r.score.info.network, str),
    Column("dynamic", "Whether the model keeps learning from the text that it predicts.",
           lambda r: r.score.info.dynamic, bool),
    Column("members", "Mixtures: the members, separated by spaces. Dynamic models: the static one.",
           lambda r: " ".join(r.score.info.members) or None, str),
    Column("train_chars", "Characters of train that the model was trained on.",
           lambda r: r.score.info.train_chars, int),
    Column("train_subset_bits", "Bits per character on the text that the model was trained on.",
           lambda r: r.bits(TRAIN_SUBSET if TRAIN_SUBSET in r.score.metrics else "train"), float, "trained on",
           in_terminal=False),
    Column("train_bits", "Bits per character on all of train.", lambda r: r.bits("train"), float, "train"),
    Column("val_bits", "Bits per character on val.", lambda r: r.bits("val"), float, "val"),
    Column("test_bits", "Bits per character on test; infinite if a token has no probability.",
           lambda r: r.bits("test"), float, "test", _or_infinite("test_bits", DIGITS)),
    Column("low", "Lower end of the 95 % interval of test_bits.",
           lambda r: r.bootstrap and r.bootstrap.interval[0], float, "95 % interval", _interval),
    Column("high", "Upper end of the 95 % interval of test_bits.", lambda r: r.bootstrap and r.bootstrap.interval[1]),
    Column("against_next", "How the model compares with the next one in the table, on the same bootstrap draws; equal "
           "if their printed bits are.",
           lambda r: r.against_next, str, "against next"),
    Column("test_perplexity", "Perplexity on test, per token of the model's own kind.",
           lambda r: r.score.metrics["test"]["perplexity"], float, "perplexity", _or_infinite("test_perplexity", 2)),
    Column("unknown_share", "Share of the tokens of test that the vocabulary lacks.",
           lambda r: r.score.metrics["test"]["unknown_share"], float, "unknown",
           lambda row: f"{row['unknown_share']:.1%}", in_terminal=False),
]  # fmt: skip
"""All columns, in their order in table.csv."""
