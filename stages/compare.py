"""Compare the results of two revisions within tolerances, and fail where a model got worse."""

import sys

import click

from harness import stage
from seqlm.compare.settings import CompareParams
from seqlm.core.layout import Layout
from seqlm.core.settings import load


@stage()
@click.argument("before")
@click.argument("after", default="workspace")
def main(layout: Layout, before: str, after: str) -> None:
    """Compare the results of revision BEFORE with those of AFTER (default: the workspace).

    Ends with code 1 where a model got worse by more than the tolerance, is missing, or
    has a value that is not finite.
    """
    from seqlm.compare.comparison import changes_markdown, compare_metrics, failures, measures_of_revision

    params = load(layout.params, "compare", CompareParams)
    changes = compare_metrics(
        measures_of_revision(before, layout), measures_of_revision(after, layout), params.splits, params.tolerance
    )
    click.echo(changes_markdown(changes))
    failed = failures(changes, params.allow_missing)
    for change in failed:
        click.echo(f"{change.model} on {change.split}: {change.verdict}", err=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
