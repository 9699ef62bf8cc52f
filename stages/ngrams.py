"""Count n-grams of one kind of token, describe them, and prepare the models that count."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import existing_file, file, folder, stage
from seqlm.errors import DataError
from seqlm.params.loading import load
from seqlm.params.ngrams import NgramsParams

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from seqlm.ngrams.counting import Chunking
    from seqlm.ngrams.zipf import ZipfFit
    from seqlm.vocab import Vocab


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--kind", type=click.Choice(["char", "word"]), required=True, help="Kind of token.")
@click.option("--corpus", type=folder(), required=True, help="The vocabulary and the encoded splits of this kind.")
@click.option("--text", type=folder(), default="data/text", help="The three splits as text.")
@click.option("--models", type=folder(), required=True, help="Where the counts of the models go.")
@click.option("--reports", type=folder(), required=True, help="Where tables and figures go.")
@click.option("--work", type=folder(), required=True, help="Where a text that is larger than memory is counted.")
@click.option("--arpa", type=file(), help="By hand: also write the Kneser-Ney model here, as .arpa or .arpa.gz.")
def main(
    params_path: Path, kind: str, corpus: Path, text: Path, models: Path, reports: Path, work: Path, arpa: Path | None
) -> None:
    """Count n-grams of one kind of token, describe them, and prepare the models that count.

    The counting is done on a Dask cluster where DASK_SCHEDULER_ADDRESS names its scheduler.
    """
    from seqlm.files import emptied
    from seqlm.ngrams.counting import Chunking
    from seqlm.vocab import Vocab, load_split

    params = load(params_path, "ngrams", NgramsParams)
    vocab = Vocab.load(corpus / "vocab.json")
    if vocab.kind != kind:
        raise DataError(f"{corpus}: holds tokens of kind {vocab.kind}, not {kind}")
    # Both are read, and refused where they are not whole, before anything is written.
    train_ids, val_ids = (load_split(corpus, split, mmap=True) for split in ("train", "val"))
    scheduler = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    with emptied(work / "counting") as place:
        _describe(params, vocab, text, reports, Chunking(params.memory, place, scheduler))
    with emptied(work / "counting") as place:
        chunking = Chunking(params.memory, place, scheduler)
        _prepare_models(params, vocab, train_ids, val_ids, models, reports, chunking, arpa)


def _prepare_models(
    params: NgramsParams,
    vocab: "Vocab",
    train_ids: "NDArray[Any]",
    val_ids: "NDArray[Any]",
    models: Path,
    reports: Path,
    chunking: "Chunking",
    arpa: Path | None,
) -> None:
    from seqlm.ngrams.arpa import write_arpa
    from seqlm.ngrams.counting import count_ngrams
    from seqlm.ngrams.models import KneserNey, tune_epsilons
    from seqlm.ngrams.storage import save_models

    laplace = params.laplace
    counts = count_ngrams(train_ids, len(vocab), params.max_order[vocab.kind], chunking)
    best, curve = tune_epsilons(counts, val_ids, laplace.max_order, laplace.backoff)
    epsilons = best if laplace.epsilons == "auto" else tuple(laplace.epsilons[: laplace.max_order])
    _report_epsilons(curve, best, reports)
    save_models(models, counts, epsilons, laplace.backoff)
    if arpa is not None:
        write_arpa(arpa, KneserNey(counts, counts.max_order), vocab.tokens)
    click.echo(
        f"{vocab.kind}: {', '.join(f'{len(table.keys):,}' for table in counts.tables)} distinct n-grams by order"
    )


def _describe(params: NgramsParams, vocab: "Vocab", text: Path, reports: Path, chunking: "Chunking") -> None:
    from seqlm.figures.ngrams import growth_figure, zipf_figure
    from seqlm.figures.style import save_svg

    ranks, fits, growth, beta = _write_tables(params, vocab, text, reports, chunking)
    # Drawing may keep this function's variables alive: the whole text, which may be large, is none of them.
    save_svg(zipf_figure(ranks, fits), reports / "zipf.svg")
    save_svg(growth_figure(growth, beta), reports / "growth.svg")


def _write_tables(
    params: NgramsParams, vocab: "Vocab", text: Path, reports: Path, chunking: "Chunking"
) -> tuple["pd.DataFrame", dict[int, "ZipfFit"], "pd.DataFrame", float]:
    """Write the tables of the whole text; return what the figures draw of it."""
    from seqlm.files import write_csv, write_json
    from seqlm.ngrams import statistics
    from seqlm.ngrams.whole import read_whole
    from seqlm.text import read_first_lines
    from seqlm.vocab import SPLITS

    whole = read_whole([text / f"{split}.txt" for split in SPLITS], vocab.kind, vocab.line_separator, chunking)
    ranks, fits = statistics.zipf_table(whole), statistics.zipf_fits(whole, params.zipf_min_count)
    growth, beta = statistics.growth_table(whole)
    write_csv(reports / "frequencies.csv", statistics.frequent_ngrams(whole, params.num_frequent))
    write_csv(reports / "zipf.csv", ranks)
    write_csv(reports / "growth.csv", growth)
    write_csv(reports / "min_freq.csv", statistics.min_freq_table(whole))
    write_csv(reports / "storage.csv", statistics.storage_table(whole))
    write_json(reports / "metrics.json", statistics.summary(whole, fits, beta))
    write_json(reports / "head.json", statistics.head(whole, next(read_first_lines(text / "train.txt", 1))))
    return ranks, fits, growth, beta


def _report_epsilons(curve: list[tuple[int, float, float]], best: tuple[float, ...], reports: Path) -> None:
    import pandas as pd

    from seqlm.figures.ngrams import epsilon_figure
    from seqlm.figures.style import save_svg
    from seqlm.files import write_csv

    frame = pd.DataFrame(curve, columns=["order", "epsilon", "val_perplexity"])
    write_csv(reports / "epsilons.csv", frame)
    save_svg(epsilon_figure(frame, dict(enumerate(best, start=1))), reports / "epsilons.svg")


if __name__ == "__main__":
    main()
