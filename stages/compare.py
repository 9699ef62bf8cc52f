"""Compare the results of two revisions within tolerances, and fail if a model got worse."""

import sys

import click

from harness import stage
from seqlm.compare.settings import CompareParams
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import load


@stage()
@click.argument("before", default="HEAD")
@click.argument("after", default="workspace")
def main(layout: Layout, before: str, after: str) -> None:
    """Compare the results of revision BEFORE (default: HEAD) with those of AFTER (default: the workspace).

    A revision is what `dvc metrics diff` takes: a commit, a branch, a tag, the name of an
    experiment, or workspace. Exits with code 1 if the results are of different corpora, or if a model is
    missing, has a value that is not finite, or got worse by more than the tolerance.
    """
    from seqlm.compare.comparison import (
        Revision,
        are_other_corpora,
        changes_markdown,
        compare_metrics,
        corpora_sentence,
        failures,
    )

    params = load(layout.params, "compare", CompareParams)
    revisions = [Revision(name, _commit(name, layout), layout) for name in (before, after)]
    corpora = revisions[0].corpus(), revisions[1].corpus()
    click.echo(corpora_sentence(*corpora))
    if are_other_corpora(*corpora) and not params.allow_other_corpus:
        click.echo("models of different corpora are compared only with compare.allow_other_corpus: true", err=True)
        sys.exit(1)
    changes = compare_metrics(revisions[0].metrics(), revisions[1].metrics(), params.splits, params.tolerance)
    click.echo(f"\n{changes_markdown(changes)}")
    if not changes:
        raise DataError(f"neither revision has values on {', '.join(params.splits)}: change compare.splits")
    failed = failures(changes, params.allow_missing)
    for change in failed:
        advice = "; compare.allow_missing: true accepts that" if change.verdict == "gone" else ""
        click.echo(f"{change.model} on {change.split}: {change.verdict}{advice}", err=True)
    sys.exit(1 if failed else 0)


def _commit(name: str, layout: Layout) -> str | None:
    """Return the commit that DVC means by the name of a revision; None for the workspace."""
    if name == "workspace":
        return None
    from dvc.scm import SCM, SCMError, resolve_rev

    try:
        return resolve_rev(SCM(str(layout.root)), name)
    except SCMError as error:
        raise ParamsError(f"{error}: see git log, dvc exp list") from error


if __name__ == "__main__":
    main()
