"""Clean the corpus and split it, in order, into train, val and test."""

from dataclasses import asdict
from pathlib import Path

import click

from harness import existing_file, file, folder, stage
from seqlm.params.loading import load
from seqlm.params.preprocess import PreprocessParams

_FIRST_LINES = 11
"""Lines shown in the reports: as many as the book looks at."""


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--raw", type=file(), default="data/raw/corpus.txt", help="The corpus as it came.")
@click.option("--text", type=folder(), default="data/text", help="Where the three splits go.")
@click.option("--reports", type=folder(), default="reports/preprocess", help="Where the table of splits goes.")
def main(params_path: Path, raw: Path, text: Path, reports: Path) -> None:
    """Clean the corpus and split it, in order, into train, val and test."""
    import pandas as pd

    from seqlm.files import write_csv, write_json
    from seqlm.preprocessing import clean_and_split
    from seqlm.text import read_first_lines

    params = load(params_path, "preprocess", PreprocessParams)
    result = clean_and_split(raw, text, params.normalise, params.errors, params.split.model_dump())
    for warning in result.warnings(params.normalise):
        click.echo(f"warning: {warning}", err=True)
    sizes = {split: asdict(counts) for split, counts in result.counts.items()}
    write_csv(reports / "splits.csv", pd.DataFrame([{"split": split} | size for split, size in sizes.items()]))
    lines = list(read_first_lines(text / "train.txt", _FIRST_LINES))
    write_csv(reports / "lines.csv", pd.DataFrame({"line": range(len(lines)), "text": lines}))
    write_json(reports / "metrics.json", sizes | {"decoding": asdict(result.decoding)})
    for split, counts in result.counts.items():
        click.echo(f"{split}: {counts.lines:,} lines, {counts.characters:,} characters, {counts.words:,} words")


if __name__ == "__main__":
    main()
