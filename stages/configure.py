"""Check every setting, and write what the other stages depend on: each run's settings, and each
stage's code."""

import environment  # noqa: F401

from pathlib import Path

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage()
@click.option("--check", "only_check", is_flag=True, help="Only check, and write nothing.")
def main(layout: Layout, only_check: bool) -> None:
    """Check every setting and that the devices are there, and write what the other stages depend
    on: each run's settings, and each stage's code.

    A run has the settings of the section train, and device, seed and num_threads, unless its
    entry in runs overrides them. A stage is rerun if the code that it imports changes in more
    than comments and messages.
    """
    from seqlm.core.devices import resolve_device
    from seqlm.core.files import remove_others, write_text
    from seqlm.core.settings import read_params
    from seqlm.networks.architectures import ARCHITECTURES
    from seqlm.pipeline.configure.fingerprints import fingerprints
    from seqlm.pipeline.configure.settings import resolve_runs
    from seqlm.pipeline.train.configs import ConfigFile

    params = read_params(layout.params)
    runs = resolve_runs(params, source=str(layout.params))
    for device in sorted({params["device"], *(config.device for config in runs.values())}):
        resolve_device(device)
    if only_check:
        return
    modules = {name: ARCHITECTURES[config.model].module for name, config in runs.items()}
    code = fingerprints(Path(__file__).parents[1], modules)
    remove_others([f"{name}.json" for name in runs], layout.configs)
    remove_others([f"{name}.txt" for name in runs], layout.code / "runs")
    for name, config in runs.items():
        ConfigFile(config=config).write(layout.config(name))
    for name, text in code.items():
        write_text(layout.code / name, text)
    click.echo("\n".join(f"{name}: {config.describe()}" for name, config in runs.items()))


if __name__ == "__main__":
    main()
