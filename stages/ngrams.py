"""Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models."""

import environment  # noqa: F401

import os
from dataclasses import asdict

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.harness import stage
from seqlm.pipeline.ngrams.settings import NgramsParams
from seqlm.vocab.kinds import KINDS


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
def main(layout: Layout, kind: str) -> None:
    """Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models.

    If SPARK_MASTER is set to the address of an Apache Spark cluster, its workers count.
    """
    from seqlm.core.files import temporary_folder, write_table
    from seqlm.models.info import describe_ngrams
    from seqlm.ngrams.counts.counting import count_ngrams
    from seqlm.ngrams.models.registry import build_models, save_models
    from seqlm.pipeline.ngrams.engines import choose_engine
    from seqlm.pipeline.ngrams.smoothing import choose_settings
    from seqlm.pipeline.ngrams.statistics import describe, join_splits
    from seqlm.vocab.corpus import load_corpus

    params = load(layout.params, "ngrams", NgramsParams)
    # The whole corpus is read, and refused if it is damaged, before anything is written.
    corpus = load_corpus(layout.corpus(kind), kind)
    memory, spark = (
        None if params.memory == "auto" else params.memory,
        os.environ.get("SPARK_MASTER") or None,
    )
    models = layout.ngrams(kind)
    # The folders are for what an engine writes, which all workers of a cluster must see.
    with temporary_folder(models) as folder:
        train, vocab_size, order = (
            corpus.splits["train"].ids,
            len(corpus.vocab),
            params.max_order[corpus.vocab.kind],
        )
        engine = choose_engine(train, vocab_size, order, memory, folder, spark)
        counts = count_ngrams(train, vocab_size, order, engine)
        has_unknown = corpus.vocab.token_kind.has_unknown
        val = corpus.splits["val"].ids
        settings, epsilons = choose_settings(counts, val, params, has_unknown=has_unknown)
        infos = describe_ngrams(build_models(counts, settings).values(), corpus.vocab)
        save_models(models, counts, settings, corpus.vocab.key, map(asdict, infos))
        sizes = ", ".join(f"{(table.counts > 0).sum():,}" for table in counts.tables)
        click.echo(f"{kind}: {sizes} distinct n-grams by order")
        del counts  # those of the whole text take their place
    with temporary_folder(models) as folder:
        tables = describe(join_splits(corpus, memory, folder, spark))
    for name, table in [*tables.items(), ("epsilons", epsilons)]:
        write_table(layout.reports("ngrams", kind), name, table)


if __name__ == "__main__":
    main()
