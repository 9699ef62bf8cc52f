"""Clean the corpus and split it, in order, into train, val and test."""

from dataclasses import asdict

import click

from harness import stage, warn
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.preprocess.settings import PreprocessParams

_FIRST_LINES = 11
"""Lines in the reports: as many as the book shows."""
_HEAD_BYTES = 1 << 14
"""How far they are read: the text may be one long line."""


@stage()
def main(layout: Layout) -> None:
    """Clean the corpus and split it, in order, into train, val and test."""
    from seqlm.core.files import write_csv, write_json
    from seqlm.core.progress import quantity
    from seqlm.core.text import text_blocks
    from seqlm.preprocess.preparing import clean_and_split, find_raw_text

    params = load(layout.params, "preprocess", PreprocessParams)
    raw, fractions = find_raw_text(layout.raw_text, layout.corpus_record), params.split.model_dump()
    result = clean_and_split(raw, layout.splits, params.normalise, params.errors, fractions)
    for warning in result.warnings:
        warn(warning)
    sizes = {split: asdict(size) for split, size in result.sizes.items()}
    reports = layout.reports("preprocess")
    write_csv(reports / "splits.csv", [{"split": split} | size for split, size in sizes.items()])
    write_json(reports / "lines.json", next(text_blocks(layout.split("train"), _HEAD_BYTES)).split("\n")[:_FIRST_LINES])
    write_json(reports / "summary.json", sizes | {"decoding": asdict(result.decoding)})
    for split, size in result.sizes.items():
        lines, characters = quantity(size.lines, "line"), quantity(size.characters, "character")
        click.echo(f"{split}: {lines}, {characters}, {quantity(size.words, 'word')}")


if __name__ == "__main__":
    main()
