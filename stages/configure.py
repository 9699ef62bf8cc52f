"""Check every setting, and resolve each run's settings into a file of its own."""

import click

from harness import stage
from seqlm.core.layout import Layout


@stage()
def main(layout: Layout) -> None:
    """Check every setting, and resolve each run's settings into a file of its own.

    A run is the section train, with device, seed and num_threads, overlaid by its entry in
    runs. Its file is what the run's training depends on.
    """
    from seqlm.configure.settings import check_whole
    from seqlm.core.files import write_checksummed
    from seqlm.train.settings import CONFIG_FORMAT

    runs = check_whole(layout.params)
    for stale in layout.configs.glob("*.json"):
        if stale.stem not in runs:
            stale.unlink()
    for name, config in runs.items():
        write_checksummed(layout.config(name), {"format": CONFIG_FORMAT} | config.model_dump())
    click.echo(f"{len(runs)} runs: {', '.join(runs)}")


if __name__ == "__main__":
    main()
