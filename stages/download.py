"""Bring one corpus here, verified against its SHA-256."""

import os
from pathlib import Path

import click

from harness import existing_file, folder, stage
from seqlm.params.download import DownloadParams
from seqlm.params.loading import load


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--registry", "registry_path", type=existing_file(), default="data/corpora.yaml", help="Known corpora.")
@click.option("--sample", type=existing_file(), default="data/sample.txt", help="The embedded corpus.")
@click.option("--out", type=folder(), default="data/raw", help="Where corpus.txt and corpus.json go.")
def main(params_path: Path, registry_path: Path, sample: Path, out: Path) -> None:
    """Bring one corpus here, verified against its SHA-256.

    A registered corpus is looked for in the folder that SEQLM_DATA_DIR names, then in the
    cache, then at its URLs; a user's own file is copied.
    """
    import pooch

    from seqlm.corpora import Sources, bring_own, bring_registered, is_registered, read_registry
    from seqlm.fetching import Limits

    params = load(params_path, "download", DownloadParams)
    registry = read_registry(registry_path)
    if is_registered(params.corpus, registry):
        data_folder = Path(os.environ["SEQLM_DATA_DIR"]) if os.environ.get("SEQLM_DATA_DIR") else None
        limits = Limits(params.timeout_s, params.deadline_s, params.max_bytes)
        sources = Sources(data_folder, Path(pooch.os_cache("seqlm")), sample, limits)
        record = bring_registered(params.corpus, registry, sources, params.fallback, out, _warn)
    else:
        record = bring_own(Path(params.corpus), params.max_bytes, out)
    click.echo(f"corpus {record['name']}: {record['bytes']:,} bytes")


def _warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


if __name__ == "__main__":
    main()
