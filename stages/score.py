"""Score a run or n-gram models on the training, validation and test sets."""

import environment  # noqa: F401

import click

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.harness import stage
from seqlm.pipeline.score.settings import ScoreParams
from seqlm.vocab.kinds import KINDS, Kind


@stage()
@click.option("--model", "names", multiple=True, help="Run to score; may be repeated.")
@click.option(
    "--kind", type=click.Choice(KINDS), help="Score the n-gram models over this kind of token."
)
def main(layout: Layout, names: tuple[str, ...], kind: Kind | None) -> None:
    """Score a run or n-gram models on the training, validation and test sets."""
    if bool(names) == (kind is not None):
        raise ParamsError("pass --model or --kind")
    if kind is not None:
        from seqlm.pipeline.score.ngrams import score_kind

        score_kind(layout, kind, load(layout.params, "score", ScoreParams), click.echo)
        return
    from seqlm.pipeline.score.networks import score_run

    for run in names:
        score_run(layout, run, load(layout.params, "score", ScoreParams), click.echo)


if __name__ == "__main__":
    main()
