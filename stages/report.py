"""Put everything on one page, and the book's numbers beside ours."""

from pathlib import Path

import click

from harness import existing_file, file, folder, stage
from seqlm.params.loading import load
from seqlm.params.report import ReportParams


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--corpus", type=file(), default="data/raw/corpus.json", help="The record of the corpus.")
@click.option("--preprocess", type=folder(), default="reports/preprocess", help="Reports of preprocess.")
@click.option("--vocab", type=folder(), default="reports/vocab", help="Reports of vocab.")
@click.option("--ngrams", type=folder(), default="reports/ngrams", help="Reports of ngrams.")
@click.option("--sine", type=folder(), default="reports/sine", help="Reports of sine.")
@click.option("--configs", type=folder(), default="data/configs", help="The runs' resolved settings.")
@click.option("--train", type=folder(), default="reports/train", help="Reports of the runs.")
@click.option("--evaluate", type=folder(), default="reports/evaluate", help="Reports of evaluate.")
@click.option("--details", type=folder(), default="data/evaluation", help="Passages that evaluate scored.")
@click.option("--generate", type=folder(), default="reports/generate", help="Reports of generate.")
@click.option("--gradients", type=folder(), default="reports/gradients", help="Reports of gradients.")
@click.option("--page", type=file(), default="reports/index.html", help="Where the page goes.")
@click.option("--table", type=file(), default="reports/table.txt", help="Where the main table goes as text.")
@click.option("--book", type=folder(), default="reports/book", help="Where the parity table goes.")
def main(
    params_path: Path,
    corpus: Path,
    preprocess: Path,
    vocab: Path,
    ngrams: Path,
    sine: Path,
    configs: Path,
    train: Path,
    evaluate: Path,
    details: Path,
    generate: Path,
    gradients: Path,
    page: Path,
    table: Path,
    book: Path,
) -> None:
    """Put everything on one page, and the book's numbers beside ours."""
    params = load(params_path, "report", ReportParams)

    from seqlm.files import read_csv, read_json, write_csv, write_text
    from seqlm.ghosts import remove_ghosts, run_names
    from seqlm.page.building import Sources, build_page, draw_text
    from seqlm.parity import applies, parity_table
    from seqlm.ranking import table_text

    for ghost in remove_ghosts(run_names(configs), train):
        click.echo(f"removed {ghost}: no such run is left")
    parity = parity_table(preprocess, ngrams, sine, train)
    own_corpus = applies(read_json(corpus))
    draw_text(read_csv(preprocess / "lines.csv")["text"], book)
    sources = Sources(corpus, preprocess, vocab, ngrams, sine, evaluate, details, generate, gradients, book)
    # The table is always written, so that DVC finds its output; off the book's corpus it has no rows.
    write_csv(book / "parity.csv", parity if own_corpus else parity.head(0))
    write_text(table, table_text(read_csv(evaluate / "table.csv")))
    write_text(page, build_page(sources, params.title, parity if own_corpus else None))
    if own_corpus:
        click.echo(f"{int(parity['ok'].sum())} of {len(parity)} values of the book are met")
        for row in parity[~parity["ok"]].itertuples():
            click.echo(f"not met: {row.section} {row.quantity}: {row.book} in the book, {row.here} here")
    click.echo(f"the page: {page}")


if __name__ == "__main__":
    main()
