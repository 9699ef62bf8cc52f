"""Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import Seed, load
from seqlm.pipeline.harness import stage
from seqlm.pipeline.sine.settings import SineParams


@stage()
def main(layout: Layout) -> None:
    """Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""
    params, seed = load(layout.params, "sine", SineParams), load(layout.params, "seed", Seed)

    import torch

    from seqlm.core.files import write_json, write_metrics, write_table
    from seqlm.pipeline.sine.study import study_sine

    torch.set_num_threads(1)  # two threads are slower on such small networks
    tables, summary = study_sine(params, seed)
    reports, losses = layout.reports("sine"), list(summary["loss"].values())
    for name, table in tables.items():
        write_table(reports, name, table)
    write_json(reports / "summary.json", summary)
    write_metrics(reports / "metrics.json", {"loss": losses[-1]})
    click.echo(f"training loss by epoch: {' '.join(f'{loss:.3f}' for loss in losses)}")


if __name__ == "__main__":
    main()
