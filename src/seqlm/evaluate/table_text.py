"""The main table as plain text."""

import pandas as pd

_NOTES = (
    "train, val, test: bits per character, unknown words charged for their spelling; less is better",
    "interval, against next: the choice of the test text, not that of the seed; not told apart: by this test text",
)
_DYNAMIC = "*: dynamic: goes on learning from the test text, each piece after it has predicted it"


def table_text(table: pd.DataFrame) -> str:
    """Return the table as plain text for a terminal."""
    lines = [f"{'model':<34}{'train':>8}{'val':>8}{'test':>8}   {'95 % interval':<15}{'perplexity':>11}   against next"]
    for row in table.itertuples():
        cells = [_cell(row.train_bits), _cell(row.val_bits), _cell(row.test_bits)]
        interval = "" if pd.isna(row.low) else f"{row.low:.3f}-{row.high:.3f}"
        perplexity = "infinite" if pd.isna(row.test_perplexity) else f"{row.test_perplexity:.2f}"
        name = f"{row.model} *" if row.adapts else row.model
        verdict = "" if pd.isna(row.against_next) else row.against_next
        lines.append(f"{name:<34}{''.join(cells)}   {interval:<15}{perplexity:>11}   {verdict}".rstrip())
    lines += [*_NOTES, _DYNAMIC] if table["adapts"].any() else _NOTES
    return "\n".join(lines) + "\n"


def _cell(value: float) -> str:
    return f"{'-' if pd.isna(value) else format(value, '.3f'):>8}"
