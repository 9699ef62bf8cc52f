"""The columns of the main table: one list for table.csv, the terminal and the page.

To add a column, add an entry to :data:`COLUMNS`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seqlm.evaluate.uncertainty import Bootstrap
from seqlm.score.store import TRAIN_SUBSET, Score

Cells = Mapping[str, Any]
"""A row of table.csv: column -> value; missing values are None or nan."""


@dataclass(frozen=True)
class Result:
    """A model's score and what the bootstrap says of it."""

    score: Score
    bootstrap: Bootstrap | None
    """None if the model gives a token of test no probability."""
    against_next: str | None = None

    def bits(self, split: str) -> float | None:
        """Return bits per character on a split, if the model was scored on it and they are finite."""
        value: float | None = self.score.metrics.get(split, {}).get("bits_per_character")
        return value


@dataclass(frozen=True)
class Column:
    """A column of table.csv, and how it is shown."""

    name: str
    meaning: str
    value: Callable[[Result], object]
    heading: str = ""
    """In the terminal and on the page; a column without a heading is in table.csv only."""
    show: Callable[[Cells], str] = lambda _: ""
    """From a row to the text of the cell."""
    in_terminal: bool = True
    is_number: bool = True


def _number(name: str, digits: int = 3, missing: str = "-") -> Callable[[Cells], str]:
    def show(cells: Cells) -> str:
        return missing if is_missing(cells[name]) else f"{cells[name]:.{digits}f}"

    return show


def is_missing(value: object) -> bool:
    """Return whether a cell is empty."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _shown_name(cells: Cells) -> str:
    return f"{cells['model']} *" if cells["dynamic"] else str(cells["model"])


def _shown_interval(cells: Cells) -> str:
    return "" if is_missing(cells["low"]) else f"{cells['low']:.3f}-{cells['high']:.3f}"


def _shown_verdict(cells: Cells) -> str:
    return "" if is_missing(cells["against_next"]) else str(cells["against_next"])


COLUMNS = (
    Column("model", "Name; an asterisk marks dynamic models.", lambda r: r.score.name, "model", _shown_name,
           is_number=False),
    Column("family", "ngram, network or mixture.", lambda r: r.score.info.family, is_number=False),
    Column("token", "Kind of token that the model predicts.", lambda r: r.score.info.token, is_number=False),
    Column("counted_token", "N-gram models: kind of token whose n-grams are counted.",
           lambda r: r.score.info.counted_token, is_number=False),
    Column("smoothing", "N-gram models: smoothing method.", lambda r: r.score.info.smoothing, is_number=False),
    Column("order", "N-gram models: order, 0 for the uniform distribution.", lambda r: r.score.info.order),
    Column("network", "Networks: kind of network.", lambda r: r.score.info.network, is_number=False),
    Column("dynamic", "Whether the model keeps learning from the text that it predicts.",
           lambda r: r.score.info.dynamic, is_number=False),
    Column("members", "Mixtures: the members, separated by spaces. Dynamic models: the static one.",
           lambda r: " ".join(r.score.info.members) or None, is_number=False),
    Column("train_chars", "Characters of train that the model was trained on.", lambda r: r.score.info.train_chars),
    Column("train_subset_bits", "Bits per character on the text that the model was trained on.",
           lambda r: r.bits(TRAIN_SUBSET if TRAIN_SUBSET in r.score.metrics else "train"), "trained on",
           _number("train_subset_bits"), in_terminal=False),
    Column("train_bits", "Bits per character on all of train.", lambda r: r.bits("train"), "train",
           _number("train_bits")),
    Column("val_bits", "Bits per character on val.", lambda r: r.bits("val"), "val", _number("val_bits")),
    Column("test_bits", "Bits per character on test; infinite if a token has no probability.", lambda r: r.bits("test"),
           "test", _number("test_bits", missing="infinite")),
    Column("low", "Lower end of the 95 % interval of test_bits.",
           lambda r: r.bootstrap and r.bootstrap.interval[0], "95 % interval", _shown_interval),
    Column("high", "Upper end of the 95 % interval of test_bits.", lambda r: r.bootstrap and r.bootstrap.interval[1]),
    Column("against_next", "How the model compares with the next one in the table, on the same bootstrap draws.",
           lambda r: r.against_next, "against next", _shown_verdict, is_number=False),
    Column("test_perplexity", "Perplexity on test, per token of the model's own kind.",
           lambda r: r.score.metrics["test"]["perplexity"], "perplexity",
           _number("test_perplexity", 2, missing="infinite")),
    Column("unknown_share", "Share of the tokens of test that the vocabulary lacks.",
           lambda r: r.score.metrics["test"]["unknown_share"], "unknown",
           lambda cells: f"{cells['unknown_share']:.1%}", in_terminal=False),
)  # fmt: skip
"""All columns, in their order in table.csv."""
