"""Draw every figure, build the page, and compare the book's numbers with ours."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage()
def main(layout: Layout) -> None:
    """Draw every figure, build the page, and compare the book's numbers with ours."""
    from seqlm.core.files import write_csv, write_metrics, write_text
    from seqlm.pipeline.report.book_comparison import agreement, compare_with_book
    from seqlm.pipeline.report.drawing import draw_all
    from seqlm.pipeline.report.findings import worse_networks
    from seqlm.pipeline.report.main_table import read_main_table
    from seqlm.pipeline.report.page import build_page, build_summary
    from seqlm.pipeline.report.playground import build_playground

    draw_all(layout)
    # DVC expects these files for every corpus; for any corpus but the book's they are empty.
    comparison = compare_with_book(layout)
    for name, rows in comparison.items():
        write_csv(layout.reports("book", f"{name}.csv"), rows)
    num_met, num_compared = agreement(comparison)
    metrics = {"missed": num_compared - num_met} if num_compared else {}
    write_metrics(layout.reports("book", "metrics.json"), metrics)
    write_text(layout.summary, build_summary(layout))
    write_text(layout.page, build_page(layout, comparison))
    write_text(layout.playground, build_playground(layout))
    for network in worse_networks(read_main_table(layout)):
        bits, guess = network["test_bits"], network["test_bits_of_guess"]
        named = f"{network['label']} with {bits:.2f}"
        click.echo(f"Worse on unseen text than guessing, which needs {guess:.2f}: {named}.")
    if num_compared:
        click.echo(f"the book: {num_met} of {num_compared} compared values are reproduced")
    click.echo(
        f"the page: {layout.page}; the playground: {layout.playground}; all models: "
        f"{layout.summary}"
    )


if __name__ == "__main__":
    main()
