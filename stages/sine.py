"""Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""

import click

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import NumThreads, Seed, load
from seqlm.sine.settings import SineParams


@stage(uses_torch=True)
def main(layout: Layout) -> None:
    """Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""
    params = load(layout.params, "sine", SineParams)
    seed, num_threads = load(layout.params, "seed", Seed), load(layout.params, "num_threads", NumThreads)

    import torch
    from safetensors.torch import save

    from seqlm.core.files import write_bytes, write_json, write_table
    from seqlm.sine.study import study_sine

    torch.set_num_threads(num_threads)
    study = study_sine(params, seed)
    write_bytes(layout.sine, save(study.mlp.state_dict()))
    reports, losses = layout.reports("sine"), list(study.summary["loss"].values())
    for name, table in study.tables.items():
        write_table(reports, name, table)
    write_json(reports / "summary.json", study.summary)
    write_json(reports / "metrics.json", {"loss": losses[-1]})
    click.echo(f"training loss by epoch: {' '.join(f'{loss:.3f}' for loss in losses)}")


if __name__ == "__main__":
    main()
