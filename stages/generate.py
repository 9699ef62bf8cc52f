"""Continue prefixes with the most important models."""

import environment  # noqa: F401

from typing import Any

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, Seed, load
from seqlm.pipeline.generate.settings import GenerateParams
from seqlm.pipeline.harness import stage


@stage()
@click.option("--prefix", multiple=True, help="By hand: a prefix to continue; may be repeated.")
@click.option(
    "--model", multiple=True, help="By hand: a model; may be repeated. Default: the most important."
)
@click.option(
    "--temperature",
    type=click.FloatRange(0, 100),
    multiple=True,
    help="By hand: replaces the setting.",
)
@click.option("--num-preds", type=click.IntRange(1, 100_000), help="By hand: replaces the setting.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="By hand: replaces the setting.")
def main(layout: Layout, **by_hand: Any) -> None:
    """Continue prefixes with the most important models.

    With any option except --root, the continuations are printed and nothing is stored.
    """
    params, seed = (
        load(layout.params, "generate", GenerateParams),
        load(layout.params, "seed", Seed),
    )
    device: Device = load(layout.params, "device", Device)  # type: ignore[arg-type]
    num_threads = load(layout.params, "num_threads", NumThreads)

    from dataclasses import asdict

    from seqlm.core.files import write_json
    from seqlm.core.progress import timed
    from seqlm.models.index import Models
    from seqlm.pipeline.generate.samples import (
        generate_samples,
        generating_models,
        measured,
        resolve_prefixes,
    )

    is_by_hand = any(value not in (None, ()) for value in by_hand.values())
    models = Models(layout, device, num_threads)
    generated = generate_samples(
        [models[name] for name in by_hand["model"] or generating_models(models)],
        list(by_hand["prefix"]) or resolve_prefixes(params.prefixes, layout),
        by_hand["temperature"] or params.temperatures,
        by_hand["num_preds"] or params.num_preds,
        seed if by_hand["seed"] is None else by_hand["seed"],
    )
    samples = []
    for of_model, seconds in timed(generated):
        samples += of_model
        for found in of_model if is_by_hand else ():
            click.echo(
                f"{found.model}, temperature {found.temperature:g}: {found.prefix}{found.text}"
            )
        if not is_by_hand:
            click.echo(f"{of_model[0].model}: {len(of_model)} samples, {seconds:.1f} s")
    if not is_by_hand:
        samples = measured(samples, models)
        write_json(
            layout.reports("generate", "samples.json"), [asdict(sample) for sample in samples]
        )


if __name__ == "__main__":
    main()
