"""Build the vocabulary of one kind of token on train, and encode the three splits."""

import click

from harness import stage, warn
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.preprocess.settings import PreprocessParams
from seqlm.vocab.settings import KINDS, VocabParams

_HEAD_ROWS = 100


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
def main(layout: Layout, kind: str) -> None:
    """Build the vocabulary of one kind of token on train, and encode the three splits."""
    import pandas as pd

    from seqlm.core.files import write_csv, write_json
    from seqlm.core.text import quantity
    from seqlm.vocab.corpus import SPLITS, build_corpus, corpus_warnings, find_line_separator, require_scorable
    from seqlm.vocab.kinds import token_kind

    params = load(layout.params, "vocab", VocabParams)
    settings, normalise = getattr(params, kind), load(layout.params, "preprocess", PreprocessParams).normalise
    separator = find_line_separator(params.line_separator, normalise, layout.corpus_record)
    texts = {split: layout.split(split) for split in SPLITS}
    require_scorable(texts, kind, separator)
    tokenizer = token_kind(kind).train_tokenizer(texts["train"], separator, settings)
    min_freq, reserved = token_kind(kind).vocab_rule(settings)
    vocab = build_corpus(texts, layout.corpus(kind), kind, separator, min_freq, reserved, tokenizer)
    head = pd.DataFrame({"token": vocab.tokens[:_HEAD_ROWS], "count": vocab.counts[:_HEAD_ROWS]})
    write_csv(layout.reports("vocab", kind, "head.csv"), head.rename_axis("index").reset_index())
    splits = {
        name: {"tokens": split.num_tokens, "characters": split.num_chars, "unknown_share": split.unknown_share}
        for name, split in vocab.splits.items()
    }
    write_json(layout.reports("vocab", kind, "summary.json"), {"size": len(vocab)} | splits)
    for warning in corpus_warnings(vocab):
        warn(warning)
    click.echo(f"{kind}: {quantity(len(vocab), 'token')}; unknown in test: {vocab.splits['test'].unknown_share:.2%}")


if __name__ == "__main__":
    main()
