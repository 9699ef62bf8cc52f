"""Draw every figure, build the page, and compare the book's numbers with ours."""

import click

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.report.settings import ReportParams


@stage()
def main(layout: Layout) -> None:
    """Draw every figure, build the page, and compare the book's numbers with ours."""
    params = load(layout.params, "report", ReportParams)

    from seqlm.core.files import read_csv, read_json, write_csv, write_json, write_text
    from seqlm.evaluate.columns import describe_reduced_batches, describe_share, table_text
    from seqlm.report.drawing import draw_all
    from seqlm.report.page import build_page
    from seqlm.report.parity import metrics, parity_tables
    from seqlm.report.playground import build_playground
    from seqlm.train.settings import run_names, training_summaries

    draw_all(layout)
    # DVC expects these files for every corpus; for another one than the book's they are empty.
    parity = parity_tables(layout)
    for name, rows in parity.items():
        write_csv(layout.reports("book", f"{name}.csv"), rows)
    write_json(layout.reports("book", "metrics.json"), metrics(parity))
    share = describe_share(read_json(layout.reports("evaluate", "metrics.json")))
    reduced = describe_reduced_batches(training_summaries(layout, run_names(layout.configs)))
    write_text(layout.table, table_text(read_csv(layout.reports("evaluate", "table.csv")), share, reduced))
    write_text(layout.page, build_page(layout, params.title, parity))
    write_text(layout.playground, build_playground(layout, params.title))
    for name, counts in metrics(parity).items():
        click.echo(f"the book: {counts['met']} of {counts['compared']} {name} values are met")
    for rows in parity.values():
        for row in rows[rows["met"] == False].itertuples(index=False):  # noqa: E712
            click.echo(f"not met: {row.section} {row.quantity}: {row[2]} in the book, {row.here} here")
    click.echo(f"the page: {layout.page}; the playground: {layout.playground}")


if __name__ == "__main__":
    main()
