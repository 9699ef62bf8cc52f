"""Continue prefixes with every model."""

import click

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, Seed, load
from seqlm.generate.settings import GenerateParams


@stage()
@click.option("--prefix", multiple=True, help="By hand: a prefix to continue; may be repeated.")
@click.option("--model", "names", multiple=True, help="By hand: a model; may be repeated. Default: all.")
@click.option("--temperature", type=click.FloatRange(0, 100), multiple=True, help="By hand: replaces the setting.")
@click.option("--num-preds", type=click.IntRange(1, 100_000), help="By hand: replaces the setting.")
@click.option("--seed", "own_seed", type=click.IntRange(0, 2**32 - 1), help="By hand: replaces the setting.")
def main(
    layout: Layout,
    prefix: tuple[str, ...],
    names: tuple[str, ...],
    temperature: tuple[float, ...],
    num_preds: int | None,
    own_seed: int | None,
) -> None:
    """Continue prefixes with every model.

    With any option except --root, the continuations are printed and nothing is stored.
    """
    params = load(layout.params, "generate", GenerateParams)
    seed = load(layout.params, "seed", Seed)
    device: Device = load(layout.params, "device", Device)
    num_threads = load(layout.params, "num_threads", NumThreads)

    from dataclasses import asdict

    from seqlm.core.files import write_json
    from seqlm.core.progress import clocked
    from seqlm.generate.samples import chosen_prefixes, generate_samples, measured, models_that_generate
    from seqlm.models.index import Models

    by_hand = any(option not in (None, ()) for option in (prefix, names, temperature, num_preds, own_seed))
    models = Models(layout, device, num_threads)
    generated = generate_samples(
        [models[name] for name in names or models_that_generate(models)],
        list(prefix) or chosen_prefixes(params.prefixes, layout),
        temperature or params.temperatures,
        num_preds or params.num_preds,
        seed if own_seed is None else own_seed,
    )
    samples = []
    for of_model, seconds in clocked(generated):
        samples += of_model
        for found in of_model if by_hand else ():
            click.echo(f"{found.model}, temperature {found.temperature:g}: {found.prefix}{found.text}")
        if not by_hand:
            click.echo(f"{of_model[0].model}: {len(of_model)} samples, {seconds:.1f} s")
    if not by_hand:
        samples = measured(samples, models)
        write_json(layout.reports("generate", "samples.json"), [asdict(sample) for sample in samples])


if __name__ == "__main__":
    main()
