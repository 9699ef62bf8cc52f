"""Bring one corpus here, verified against its SHA-256."""

import os
from pathlib import Path

import click

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.download.settings import DownloadParams


@stage()
def main(layout: Layout) -> None:
    """Bring one corpus here, verified against its SHA-256.

    A registered corpus that is here already stays. Otherwise it is looked for in the folder
    that SEQLM_DATA_DIR names, then in the cache, then at its URLs. A user's own file is copied.
    """
    import pooch

    from seqlm.core.files import write_table
    from seqlm.download.corpora import Sources, bring_own, bring_registered, is_registered, read_registry
    from seqlm.download.fetching import Limits

    params = load(layout.params, "download", DownloadParams)
    registry = read_registry(layout.registry)
    if is_registered(params.corpus, registry, layout.root):
        data_folder = Path(os.environ["SEQLM_DATA_DIR"]) if os.environ.get("SEQLM_DATA_DIR") else None
        limits = Limits(params.timeout_s, params.deadline_s, params.max_bytes)
        sources = Sources(data_folder, Path(pooch.os_cache("seqlm")), layout.sample, limits)
        record = bring_registered(params.corpus, registry, sources, params.fallback, layout.raw_text, _warn)
    else:
        record = bring_own(layout.root / params.corpus, params.max_bytes, layout.raw_text)
    write_table(layout.reports("download"), "summary", record)
    click.echo(f"corpus {record['name']}: {record['bytes']:,} bytes")


def _warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


if __name__ == "__main__":
    main()
