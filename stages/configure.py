"""Check every setting, and resolve each run's settings into a file of its own."""

import click

from harness import stage
from seqlm.core.layout import Layout


@stage()
def main(layout: Layout) -> None:
    """Check every setting, and resolve each run's settings into a file of its own.

    A run has the settings of the section train, and device, seed and num_threads, unless its
    entry in runs overrides them. Its training depends on the file with its resolved settings.
    """
    from seqlm.configure.settings import check_values, describe_runs
    from seqlm.core.files import write_checksummed
    from seqlm.core.settings import read_params
    from seqlm.train.settings import CONFIG_FORMAT

    params = read_params(layout.params)
    runs = check_values(params, source=str(layout.params))
    for stale in layout.configs.glob("*.json"):
        if stale.stem not in runs:
            stale.unlink()
    for name, config in runs.items():
        write_checksummed(layout.config(name), {"format": CONFIG_FORMAT} | config.model_dump())
    click.echo("\n".join(describe_runs(params, runs)))


if __name__ == "__main__":
    main()
