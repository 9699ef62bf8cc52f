"""The main table as plain text."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

_SPLITS = ("train", "val", "test")
_NOTES = (
    "train, val, test: bits per character, unknown words charged for their spelling; less is better",
    "interval, against next: the choice of the test text, not that of the seed; not told apart: by this test text",
)
_DYNAMIC = "*: dynamic: goes on learning from the test text, each piece after it has predicted it"


def table_text(table: pd.DataFrame, *remarks: str) -> str:
    """Return the table as plain text for a terminal; ``remarks`` follow it, but for empty ones."""
    names = [f"{row.model} *" if row.adapts else row.model for row in table.itertuples()]
    width = max(map(len, ["model", *names])) + 2
    splits = "".join(f"{split:>8}" for split in _SPLITS)
    lines = [f"{'model':<{width}}{splits}   {'95 % interval':<15}{'perplexity':>11}   against next"]
    for name, row in zip(names, table.itertuples(), strict=True):
        cells = [_cell(row.train_bits), _cell(row.val_bits), _cell(row.test_bits)]
        interval = "" if pd.isna(row.low) else f"{row.low:.3f}-{row.high:.3f}"
        perplexity = "infinite" if pd.isna(row.test_perplexity) else f"{row.test_perplexity:.2f}"
        verdict = "" if pd.isna(row.against_next) else row.against_next
        lines.append(f"{name:<{width}}{''.join(cells)}   {interval:<15}{perplexity:>11}   {verdict}".rstrip())
    lines += [*_NOTES, _DYNAMIC] if table["adapts"].any() else _NOTES
    lines += filter(None, remarks)
    return "\n".join(lines) + "\n"


def describe_share(measures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return how much of each split was scored, the same by every model; nothing where it was all.

    ``measures``: model -> split -> measures.
    """
    shares = {split: of_model[split]["scored_share"] for of_model in measures.values() for split in of_model}
    if all(shares[split] == 1 for split in _SPLITS):
        return ""
    listed = ", ".join(f"{shares[split]:.2%} of {split}" for split in _SPLITS)
    return f"scored: {listed}, in passages spread evenly over each"


def describe_shrunk(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return which runs had smaller minibatches than their settings ask for; nothing where none had.

    ``summaries``: run -> the summary of its training.
    """
    shrunk = {run: summary for run, summary in summaries.items() if summary["shrunk"]}
    listed = ", ".join(f"{run} {summary['batch_size']} x {summary['num_steps']}" for run, summary in shrunk.items())
    return f"minibatches as large as so short a text allows, batch_size x num_steps: {listed}" if listed else ""


def _cell(value: float) -> str:
    return f"{'-' if pd.isna(value) else format(value, '.3f'):>8}"
