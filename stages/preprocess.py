"""Clean the corpus and split it, in order, into training, validation and test sets."""

import environment  # noqa: F401

from dataclasses import asdict

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.harness import stage, warn
from seqlm.pipeline.preprocess.settings import PreprocessParams


@stage()
def main(layout: Layout) -> None:
    """Clean the corpus and split it, in order, into training, validation and test sets."""
    from seqlm.core.files import read_json, write_csv, write_json
    from seqlm.core.progress import count_noun
    from seqlm.core.stored import require_sha256
    from seqlm.pipeline.preprocess.splitting import clean_and_split

    params = load(layout.params, "preprocess", PreprocessParams)
    record = read_json(layout.corpus_record)
    require_sha256(layout.raw_text, record["sha256"], "run the download stage again")
    name = str(record["file"])  # by which its owner knows the text
    result = clean_and_split(
        layout.raw_text, name, layout.splits, params.normalise, params.split.shares
    )
    for warning in result.warnings:
        warn(warning)
    sizes = {split: asdict(size) for split, size in result.sizes.items()}
    summary = sizes | {
        "dropped": result.dropped,
        "repeated": result.repeated,
        "warnings": result.warnings or None,  # DVC cannot read a plot file with an empty list in it
    }
    reports = layout.reports("preprocess")
    write_csv(reports / "splits.csv", [{"split": split} | size for split, size in sizes.items()])
    write_json(reports / "lines.json", result.first_lines)
    write_json(reports / "summary.json", summary)
    for split, size in result.sizes.items():
        lines, characters = count_noun(size.lines, "line"), count_noun(size.characters, "character")
        click.echo(f"{split}: {lines}, {characters}, {count_noun(size.words, 'word')}")
    shares = ", ".join(f"{share:.1%} of {split}" for split, share in result.repeated.items())
    click.echo(f"dropped: {result.dropped:.1%} of the characters that are not blank")
    click.echo(f"passages that the training set contains too: {shares}")


if __name__ == "__main__":
    main()
