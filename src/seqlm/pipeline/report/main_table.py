"""The main table as people read it: the cells of its columns, on the page and as plain text."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.pipeline.report.formats import decimals, half_width
from seqlm.pipeline.score.excerpts import INFINITE

STILL_LEARNING = (
    "still learning: after predicting a piece of the test text, these models learn from it"
)
"""The heading of the dynamic models."""


def read_main_table(layout: Layout) -> pd.DataFrame:
    """The main table. Raises DataError if it is missing or broken."""
    return read_csv(layout.reports("evaluate", "table.csv"))


def labels_by_model(table: pd.DataFrame) -> dict[str, str]:
    """The names that people read."""
    return dict(zip(table["model"], table["label"], strict=True))


def _difference(row: Any) -> str:
    if pd.isna(row.best_difference):
        return ""
    mark = "~ " if row.best_verdict == "not significant" else ""
    return f"{mark}{row.best_difference:+.3f} ±{row.best_margin:.3f}".replace("-", "−")


def _val_bits(row: Any) -> str:
    mark = "^" if row.chosen_on_val and pd.notna(row.val_bits) else ""
    return mark + decimals(row.val_bits, missing="-")


CELLS: dict[str, Callable[[Any], str]] = {
    "model": lambda row: row.label,
    "test": lambda row: decimals(row.test_bits, missing=INFINITE),
    "95 %": half_width,
    "to best": _difference,
    "val": _val_bits,
    "train": lambda row: decimals(row.train_bits, missing="-"),
    "trained on": lambda row: decimals(row.seen_bits, missing="-"),
    "train characters": lambda row: f"{row.train_chars:,}",
    "perplexity": lambda row: decimals(row.test_perplexity, missing=INFINITE),
}
"""Heading -> how the cells of its column are made from rows of the table."""
_ONLY_ON_PAGE = ("model", "trained on", "train characters")


def table_text(table: pd.DataFrame) -> str:
    """The table as plain text of at most 100 columns; models have their identifiers."""
    shown = {heading: cell for heading, cell in CELLS.items() if heading not in _ONLY_ON_PAGE}
    rows = [[row.model, *(cell(row) for cell in shown.values())] for row in table.itertuples()]
    lines = aligned([["model", *shown], *rows])
    if table["dynamic"].any():
        lines.insert(len(lines) - table["dynamic"].sum(), f"{STILL_LEARNING}:")
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text with the cells of each column below one another: the first on the left, the
    others on the right."""
    columns = []
    for index, cells in enumerate(zip(*rows, strict=True)):
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if index else cell.ljust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
