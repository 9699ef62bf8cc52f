"""Measure how far gradients reach and what truncation does to them (section 8.7)."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import Seed, load
from seqlm.pipeline.gradients.settings import GradientsParams
from seqlm.pipeline.harness import stage


@stage()
def main(layout: Layout) -> None:
    """Measure how far gradients reach and what truncation does to them (section 8.7)."""
    params, seed = (
        load(layout.params, "gradients", GradientsParams),
        load(layout.params, "seed", Seed),
    )

    import torch

    from seqlm.core.files import write_table
    from seqlm.pipeline.gradients.study import study_gradients
    from seqlm.vocab.corpus import load_split
    from seqlm.vocab.vocabulary import Vocab

    torch.set_num_threads(1)  # two threads are slower on such small networks
    folder = layout.corpus("char")
    vocab = Vocab.load(layout.vocab("char"), "char")
    train, val = (load_split(folder, split, vocab) for split in ("train", "val"))
    tables, summary = study_gradients(params, train, val, len(vocab), seed)
    for name, table in tables.items():
        write_table(layout.reports("gradients"), name, table)
    write_table(layout.reports("gradients"), "summary", summary)
    found = summary["spectral_radius"].items()
    radii = "; ".join(
        f"{model} {radius['initial']:.3f}, {radius['trained']:.3f}" for model, radius in found
    )
    click.echo(f"spectral radius of W_hh before and after training: {radii}")


if __name__ == "__main__":
    main()
