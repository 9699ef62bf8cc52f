"""The main table as plain text."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from seqlm.evaluate.columns import COLUMNS

_SPLITS = ("train", "val", "test")
_NOTES = (
    "train, val, test: bits per character, with unknown words charged for their spelling; lower is better",
    "interval, against next: cover the choice of the test text, not that of the seed",
)
_DYNAMIC = "*: dynamic: keeps learning from the test text after predicting it"


def table_text(table: pd.DataFrame, *remarks: str) -> str:
    """Return the table as plain text for a terminal, followed by the ``remarks`` that are not empty."""
    columns = [column for column in COLUMNS if column.heading and column.in_terminal]
    rows = [[column.cell(row) for column in columns] for row in table.to_dict("records")]
    widths = [max(map(len, cells)) for cells in zip([c.heading for c in columns], *rows, strict=True)]
    lines = []
    for cells in ([column.heading for column in columns], *rows):
        aligned = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    lines += [*_NOTES, _DYNAMIC] if table["dynamic"].any() else _NOTES
    lines += filter(None, remarks)
    return "\n".join(lines) + "\n"


def describe_share(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return how much of each split was scored, "" if it was all; ``metrics``: model -> split -> metrics."""
    shares = {split: of_model[split]["scored_share"] for of_model in metrics.values() for split in of_model}
    if all(shares[split] == 1 for split in _SPLITS):
        return ""
    listed = ", ".join(f"{shares[split]:.2%} of {split}" for split in _SPLITS)
    return f"scored: {listed}, in evenly spaced passages"


def describe_reduced_batches(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return which runs had smaller minibatches than their settings ask for, "" if none had.

    ``summaries``: run -> the summary of its training.
    """
    reduced = {run: summary for run, summary in summaries.items() if summary["batch_reduced"]}
    listed = ", ".join(f"{run} {summary['batch_size']} x {summary['num_steps']}" for run, summary in reduced.items())
    return f"minibatches reduced to fit the short text (batch_size x num_steps): {listed}" if listed else ""
