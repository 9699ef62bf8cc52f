"""Train one run, or resume it if it was interrupted."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage(if_out_of_memory="lower the batch size or the model's size")
# Not --run: torchrun takes that, even after the script's name, for an abbreviation of its own
# --run-path.
@click.option(
    "--model",
    "run",
    required=True,
    help="Name of the run to train; the stage configure must have run.",
)
def main(layout: Layout, run: str) -> None:
    """Train one run.

    An interrupted run resumes from its last checkpoint and ends with the same
    weights as one that was not interrupted. If torchrun starts several processes, they
    train together, each on some rows of every minibatch.
    """
    from seqlm.pipeline.train.runs import train_run

    train_run(layout, run, click.echo)


if __name__ == "__main__":
    main()
