"""Build the vocabulary of one kind of token on the training set; encode the three splits."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.harness import stage, warn
from seqlm.pipeline.preprocess.settings import PreprocessParams
from seqlm.pipeline.vocab.settings import VocabParams
from seqlm.vocab.kinds import KINDS

_HEAD_ROWS = 100


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
def main(layout: Layout, kind: str) -> None:
    """Build the vocabulary of one kind of token on the training set; encode the three splits."""
    from seqlm.core.files import read_text, write_csv, write_json
    from seqlm.core.progress import count_noun
    from seqlm.pipeline.preprocess.splitting import require_splits
    from seqlm.pipeline.vocab.advice import corpus_warnings, find_line_separator
    from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
    from seqlm.vocab.kinds import token_kind

    params = load(layout.params, "vocab", VocabParams)
    settings, normalise = (
        getattr(params, kind),
        load(layout.params, "preprocess", PreprocessParams).normalise,
    )
    separator = find_line_separator(params.line_separator, normalise, layout.corpus_record)
    require_splits(layout.splits)
    texts = {split: layout.split(split) for split in SPLITS}
    tokenizer = token_kind(kind).train_tokenizer(read_text(texts["train"]), separator, settings)
    min_freq = getattr(settings, "min_freq", 0)
    vocab = build_corpus(
        texts, layout.corpus(kind), kind, separator, min_freq, tokenizer, normalise
    )
    counted = enumerate(zip(vocab.tokens[:_HEAD_ROWS], vocab.counts[:_HEAD_ROWS], strict=True))
    head = [{"index": index, "token": token, "count": count} for index, (token, count) in counted]
    write_csv(layout.reports("vocab", kind, "head.csv"), head)
    splits = {
        name: {
            "tokens": split.num_tokens,
            "characters": split.num_chars,
            "unknown_share": split.unknown_share,
        }
        for name, split in vocab.splits.items()
    }
    warnings = corpus_warnings(vocab, load_split(layout.corpus(kind), "train", vocab))
    # DVC cannot read a plot file with an empty list in it.
    summary = {"size": len(vocab)} | splits | {"warnings": warnings or None}
    write_json(layout.reports("vocab", kind, "summary.json"), summary)
    for warning in warnings:
        warn(warning)
    click.echo(
        f"{kind}: {count_noun(len(vocab), 'token')}; unknown in the test set: "
        f"{vocab.splits['test'].unknown_share:.2%}"
    )


if __name__ == "__main__":
    main()
