"""Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models."""

import os
from pathlib import Path

import click

from harness import NewFile, stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.ngrams.settings import NgramsParams
from seqlm.vocab.settings import KINDS


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
@click.option(
    "--arpa", type=NewFile(), help="By hand: only write the Kneser-Ney model counted before, .arpa or .arpa.gz."
)
def main(layout: Layout, kind: str, arpa: Path | None) -> None:
    """Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models.

    If DASK_SCHEDULER_ADDRESS names a scheduler, the workers of its Dask cluster count.
    """
    if arpa is not None:
        _export(layout, kind, arpa)
        return

    from seqlm.core.files import fresh_folder, write_table
    from seqlm.ngrams.counts.counting import Chunking, NgramCounter
    from seqlm.ngrams.models.registry import fit_smoothings, save_models
    from seqlm.ngrams.statistics import describe, join_splits
    from seqlm.vocab.corpus import load_corpus

    params = load(layout.params, "ngrams", NgramsParams)
    # The whole corpus is read, and refused if it is damaged, before anything is written.
    corpus = load_corpus(layout.corpus(kind), kind)
    if not corpus.vocab.token_kind.has_unknown:
        params = params.model_copy(update={"unknown": "uniform"})
    scheduler = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    with fresh_folder(layout.counting_folder(kind)) as folder:
        train, order = corpus.splits["train"].ids, params.max_order[corpus.vocab.kind]
        counter = NgramCounter(train, len(corpus.vocab), order, Chunking(params.memory, folder, scheduler))
        counts = counter.count()
        fits = fit_smoothings(counts, corpus.splits["val"].ids, params)
        save_models(layout.ngrams(kind), counts, {name: fit.settings for name, fit in fits.items()}, corpus.vocab.key)
        sizes = ", ".join(f"{(table.counts > 0).sum():,}" for table in counts.tables)
        click.echo(f"{kind}: {sizes} distinct n-grams by order")
        del counts  # those of the whole text take their place
        with fresh_folder(folder / "text") as subfolder:
            text = join_splits(corpus, Chunking(params.memory, subfolder, scheduler), counter.packed)
            tables = describe(text, params.zipf_min_count, params.num_frequent)
    for name, table in [*tables.items(), *(found for fit in fits.values() for found in fit.tables.items())]:
        write_table(layout.reports("ngrams", kind), name, table)


def _export(layout: Layout, kind: str, arpa: Path) -> None:
    """Write the Kneser-Ney model that the pipeline has counted, and nothing else."""
    from seqlm.ngrams.arpa import write_arpa
    from seqlm.ngrams.models.registry import load_kneser_ney
    from seqlm.vocab.vocabulary import Vocab

    vocab = Vocab.load(layout.vocab(kind), kind)
    model = load_kneser_ney(layout.ngrams(kind), vocab.key)
    write_arpa(arpa, model, vocab.tokens)
    click.echo(f"{arpa}: Kneser-Ney of order {model.order} over {len(vocab):,} tokens")


if __name__ == "__main__":
    main()
