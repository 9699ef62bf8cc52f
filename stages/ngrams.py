"""Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models."""

import os
from pathlib import Path

import click

from harness import NewFile, stage
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.ngrams.settings import NgramsParams
from seqlm.vocab.settings import KINDS


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
@click.option(
    "--arpa", type=NewFile(), help="By hand: only write the Kneser-Ney model counted before, .arpa or .arpa.gz."
)
@click.option("--order", type=click.IntRange(1, 100), help="With --arpa: of this order instead of the highest.")
@click.option(
    "--prune",
    default="",
    help="With --arpa: leave out rare n-grams, as lmplz does: '0 0 1' those of order 3 that occur once.",
)
def main(layout: Layout, kind: str, arpa: Path | None, order: int | None, prune: str) -> None:
    """Count n-grams of one kind of token, describe the text by them, and prepare the n-gram models.

    If DASK_SCHEDULER_ADDRESS names a scheduler, the workers of its Dask cluster count.
    """
    if arpa is not None:
        _export(layout, kind, arpa, order, prune.split())
        return
    if order is not None or prune:
        raise ParamsError("--order and --prune belong to --arpa")

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


def _export(layout: Layout, kind: str, arpa: Path, order: int | None, prune: list[str]) -> None:
    """Write the Kneser-Ney model that the pipeline has counted, or a smaller one, and nothing else."""
    from seqlm.ngrams.models.pruned import smaller

    from seqlm.ngrams.arpa import write_arpa
    from seqlm.ngrams.models.registry import load_kneser_ney
    from seqlm.vocab.vocabulary import Vocab

    vocab = Vocab.load(layout.vocab(kind), kind)
    model = smaller(load_kneser_ney(layout.ngrams(kind), vocab.key), prune, order)
    write_arpa(arpa, model, vocab.tokens)
    sizes = ", ".join(f"{len(table):,}" for table in model.counts.tables[: model.order])
    click.echo(f"{arpa}: Kneser-Ney of order {model.order} over {len(vocab):,} tokens, {sizes} n-grams by order")


if __name__ == "__main__":
    main()
