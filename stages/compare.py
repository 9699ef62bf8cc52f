"""Compare the metrics of two revisions within tolerances, and fail where a model got worse."""

import sys
from pathlib import Path

import click

from harness import existing_file, stage
from seqlm.params.compare import CompareParams
from seqlm.params.loading import load


@stage()
@click.argument("before")
@click.argument("after", default="workspace")
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--metrics", default="reports/evaluate/metrics.json", help="The metrics file.")
def main(before: str, after: str, params_path: Path, metrics: str) -> None:
    """Compare the metrics of revision BEFORE with those of AFTER (default: the workspace).

    Ends with code 1 where a model got worse by more than the tolerance, is missing, or
    has a value that is not finite.
    """
    from seqlm.comparison import changes_markdown, compare_metrics, failures, metrics_of_revision

    params = load(params_path, "compare", CompareParams)
    here = Path.cwd()
    changes = compare_metrics(
        metrics_of_revision(before, metrics, here),
        metrics_of_revision(after, metrics, here),
        params.splits,
        params.tolerance,
    )
    click.echo(changes_markdown(changes))
    failed = failures(changes, params.allow_missing)
    for change in failed:
        click.echo(f"{change.model} on {change.split}: {change.verdict}", err=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
