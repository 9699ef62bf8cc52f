"""Continue prefixes with the most important models."""

import environment  # noqa: F401

from dataclasses import asdict

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, Seed, load
from seqlm.pipeline.generate.settings import GenerateParams
from seqlm.pipeline.harness import stage


@stage()
def main(layout: Layout) -> None:
    """Continue prefixes with the most important models."""
    params = load(layout.params, "generate", GenerateParams)
    seed = load(layout.params, "seed", Seed)
    device: Device = load(layout.params, "device", Device)  # type: ignore[arg-type]
    num_threads = load(layout.params, "num_threads", NumThreads)

    from seqlm.core.files import write_json
    from seqlm.core.progress import count_noun, timed
    from seqlm.models.index import Models
    from seqlm.pipeline.generate.samples import (
        generate_samples,
        generating_models,
        resolve_prefixes,
    )

    models = Models(layout, device, num_threads)
    generated = generate_samples(
        [models[name] for name in generating_models(models)],
        resolve_prefixes(params.prefixes, layout),
        params.temperatures,
        params.num_preds,
        seed,
        layout,
    )
    samples = []
    for model_samples, seconds in timed(generated):
        samples += model_samples
        copied = max(sample.copied for sample in model_samples)
        click.echo(
            f"{model_samples[0].model}: {len(model_samples)} samples, {seconds:.1f} s; the longest "
            f"piece copied from the training set has {count_noun(copied, 'character')}"
        )
    write_json(layout.reports("generate", "samples.json"), list(map(asdict, samples)))


if __name__ == "__main__":
    main()
