"""Clean the corpus and split it, in order, into train, val and test."""

import environment  # noqa: F401

from dataclasses import asdict

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.harness import stage, warn
from seqlm.pipeline.preprocess.settings import PreprocessParams


@stage()
def main(layout: Layout) -> None:
    """Clean the corpus and split it, in order, into train, val and test."""
    from seqlm.core.files import read_json, write_csv, write_json
    from seqlm.core.progress import count_noun
    from seqlm.pipeline.preprocess.splitting import clean_and_split

    params = load(layout.params, "preprocess", PreprocessParams)
    name = str(read_json(layout.corpus_record)["file"])  # by which its owner knows the text
    result = clean_and_split(
        layout.raw_text, name, layout.splits, params.normalise, params.split.shares
    )
    for warning in result.warnings:
        warn(warning)
    sizes = {split: asdict(size) for split, size in result.sizes.items()}
    reports = layout.reports("preprocess")
    write_csv(reports / "splits.csv", [{"split": split} | size for split, size in sizes.items()])
    write_json(reports / "lines.json", result.first_lines)
    write_json(reports / "summary.json", sizes | {"decoding": asdict(result.letters)})
    for split, size in result.sizes.items():
        lines, characters = count_noun(size.lines, "line"), count_noun(size.characters, "character")
        click.echo(f"{split}: {lines}, {characters}, {count_noun(size.words, 'word')}")


if __name__ == "__main__":
    main()
