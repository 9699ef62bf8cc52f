"""Check every setting, and resolve each run's settings into a file of its own."""

from pathlib import Path

import click

from harness import existing_file, folder, stage


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--configs", type=folder(), default="data/configs", help="Where one file a run goes.")
def main(params_path: Path, configs: Path) -> None:
    """Check every setting, and resolve each run's settings into a file of its own.

    A run is the section train overlaid by its entry in runs, with device, seed and
    num_threads. Its file is what the run's training depends on.
    """
    from seqlm.files import write_sealed
    from seqlm.params.train import CONFIG_FORMAT
    from seqlm.params.whole import check_whole

    runs = check_whole(params_path)
    for stale in configs.glob("*.json"):
        if stale.stem not in runs:
            stale.unlink()
    for name, config in runs.items():
        write_sealed(configs / f"{name}.json", {"format": CONFIG_FORMAT} | config.model_dump())
    click.echo(f"{len(runs)} runs: {', '.join(runs)}")


if __name__ == "__main__":
    main()
