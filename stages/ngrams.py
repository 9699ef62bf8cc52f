"""Count n-grams of one kind of token, describe them, and prepare the models that count."""

import os
from pathlib import Path

import click

from harness import file, stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.ngrams.settings import NgramsParams
from seqlm.vocab.settings import KINDS


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
@click.option("--arpa", type=file(), help="By hand: only write the Kneser-Ney model counted before, .arpa or .arpa.gz.")
def main(layout: Layout, kind: str, arpa: Path | None) -> None:
    """Count n-grams of one kind of token, describe them, and prepare the models that count.

    The counting is done on a Dask cluster where DASK_SCHEDULER_ADDRESS names its scheduler.
    """
    if arpa is not None:
        _export(layout, kind, arpa)
        return

    import pandas as pd

    from seqlm.core.files import fresh_folder, write_csv, write_table
    from seqlm.ngrams.corpus_stream import MAX_ORDER, num_tokens_of
    from seqlm.ngrams.counts.counting import Chunking, NgramCounter
    from seqlm.ngrams.description import describe
    from seqlm.ngrams.models.smoothing import tune_epsilons
    from seqlm.ngrams.models.storage import save_models
    from seqlm.vocab.encoded import load_corpus

    params = load(layout.params, "ngrams", NgramsParams)
    # All of it is read, and refused where it is not whole, before anything is written.
    corpus = load_corpus(layout.corpus(kind), kind)
    vocab = corpus.vocab
    reports, scheduler = layout.reports("ngrams", kind), os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    with fresh_folder(layout.temporary_folder(kind)) as place:
        chunking, laplace = Chunking(params.memory, place, scheduler), params.laplace
        train, order = corpus.splits["train"].ids, params.max_order[vocab.kind]
        counter = NgramCounter(
            train, len(vocab), order, chunking, num_tokens=num_tokens_of(corpus), keep=min(order, MAX_ORDER)
        )
        counts = counter.count()
        best, curve = tune_epsilons(counts, corpus.splits["val"].ids, laplace.max_order, laplace.backoff)
        epsilons = best if laplace.epsilons == "auto" else tuple(laplace.epsilons[: laplace.max_order])
        write_csv(reports / "epsilons.csv", pd.DataFrame(curve, columns=["order", "epsilon", "val_perplexity"]))
        save_models(layout.ngrams(kind), counts, epsilons, laplace.backoff)
        sizes = ", ".join(f"{len(table):,}" for table in counts.tables)
        click.echo(f"{kind}: {sizes} distinct n-grams by order")
        del counts  # the whole text's come in their place
        limits = {"zipf_min_count": params.zipf_min_count, "num_frequent": params.num_frequent}
        with fresh_folder(place / "whole") as beside:
            for name, table in describe(corpus, Chunking(params.memory, beside, scheduler), counter.kept, **limits):
                write_table(reports, name, table)


def _export(layout: Layout, kind: str, arpa: Path) -> None:
    """Write the model that the pipeline has counted, and nothing else."""
    from seqlm.ngrams.arpa.writing import write_arpa
    from seqlm.ngrams.models.storage import load_kneser_ney
    from seqlm.vocab.vocabulary import Vocab

    vocab = Vocab.load(layout.vocab(kind), kind)
    model = load_kneser_ney(layout.ngrams(kind), len(vocab))
    write_arpa(arpa, model, vocab.tokens)
    click.echo(f"{arpa}: Kneser-Ney of order {model.order} over {len(vocab):,} tokens")


if __name__ == "__main__":
    main()
