"""Draw every figure, put everything on one page, and the book's numbers beside ours."""

import click

from harness import clear_stale_runs, stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.report.settings import ReportParams


@stage()
def main(layout: Layout) -> None:
    """Draw every figure, put everything on one page, and the book's numbers beside ours."""
    params = load(layout.params, "report", ReportParams)

    import pandas as pd

    from seqlm.core.files import read_csv, read_json, write_csv, write_json, write_text
    from seqlm.evaluate.table_text import describe_reduced_batches, describe_share, table_text
    from seqlm.report.drawing import draw_all
    from seqlm.report.page import build_page
    from seqlm.report.parity import COLUMNS, applies, parity_table
    from seqlm.train.runs import run_names, training_summaries

    draw_all(layout, click.echo)
    parity = parity_table(layout) if applies(read_json(layout.corpus_record)) else None
    met = {} if parity is None else {"met": int(parity["ok"].sum())}
    # Both are always written, so that DVC finds its outputs; off the book's corpus they are empty.
    write_csv(layout.reports("book", "parity.csv"), pd.DataFrame(columns=COLUMNS) if parity is None else parity)
    write_json(layout.reports("book", "metrics.json"), met)
    share = describe_share(read_json(layout.reports("evaluate", "metrics.json")))
    shrunk = describe_reduced_batches(training_summaries(layout, run_names(layout.configs)))
    write_text(layout.table, table_text(read_csv(layout.reports("evaluate", "table.csv")), share, shrunk))
    write_text(layout.page, build_page(layout, params.title, parity))
    clear_stale_runs(layout, run_names(layout.configs))
    if parity is not None:
        click.echo(f"{met['met']} of {len(parity)} values of the book are met")
        for row in parity[~parity["ok"]].itertuples():
            click.echo(f"not met: {row.section} {row.quantity}: {row.book} in the book, {row.here} here")
    click.echo(f"the page: {layout.page}")


if __name__ == "__main__":
    main()
