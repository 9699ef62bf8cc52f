"""Build the vocabulary of one kind of token on train, and encode the three splits."""

from pathlib import Path

import click

from harness import existing_file, folder, stage
from seqlm.params.loading import load
from seqlm.params.vocab import VocabParams

_HEAD_ROWS = 100


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--kind", type=click.Choice(["char", "word"]), required=True, help="Kind of token.")
@click.option("--text", type=folder(), default="data/text", help="The three splits.")
@click.option("--corpus", type=folder(), required=True, help="Where the vocabulary and the encoded splits go.")
@click.option("--reports", type=folder(), required=True, help="Where the vocabulary's size and head go.")
def main(params_path: Path, kind: str, text: Path, corpus: Path, reports: Path) -> None:
    """Build the vocabulary of one kind of token on train, and encode the three splits."""
    import pandas as pd

    from seqlm.files import write_csv, write_json
    from seqlm.vocab import SPLITS, build_corpus

    params = load(params_path, "vocab", VocabParams)
    chosen = params.char if kind == "char" else params.word
    vocab = build_corpus(
        {split: text / f"{split}.txt" for split in SPLITS},
        corpus,
        kind,
        params.line_separator,
        chosen.min_freq,
        chosen.reserved_tokens,
    )
    head = pd.DataFrame({"token": vocab.tokens[:_HEAD_ROWS], "count": vocab.counts[:_HEAD_ROWS]})
    write_csv(reports / "head.csv", head.rename_axis("index").reset_index())
    splits = {
        name: {"tokens": split.num_tokens, "characters": split.num_chars, "unknown_share": split.unknown_share}
        for name, split in vocab.splits.items()
    }
    write_json(reports / "metrics.json", {"size": len(vocab)} | splits)
    click.echo(f"{kind}: {len(vocab):,} tokens; unknown in test: {vocab.splits['test'].unknown_share:.2%}")


if __name__ == "__main__":
    main()
