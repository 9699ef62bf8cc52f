"""Get one corpus, verified by its SHA-256."""

import os
from pathlib import Path

import click

from harness import clear_stale_runs, stage, warn
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.download.settings import DownloadParams


@stage()
def main(layout: Layout) -> None:
    """Get one corpus, verified by its SHA-256.

    A registered corpus that is already here is kept. Otherwise the stage looks for it in the folder
    that SEQLM_DATA_DIR names, then in the cache, then at its URLs. A user's own file is copied.
    """
    import pooch

    from seqlm.core.files import write_table
    from seqlm.core.text import quantity
    from seqlm.download.corpora import Corpus, Sources, copy_own_text, get_registered, is_registered

    params = load(layout.params, "download", DownloadParams)
    registry = load(layout.registry, "corpora", dict[str, Corpus])
    if is_registered(params.corpus, registry, layout.root):
        data_folder = Path(os.environ["SEQLM_DATA_DIR"]) if os.environ.get("SEQLM_DATA_DIR") else None
        sources = Sources(data_folder, Path(pooch.os_cache("seqlm")), layout.sample, params)
        record = get_registered(params.corpus, registry, sources, params.fallback, layout.raw_text, warn)
    else:
        record = copy_own_text(layout.root / params.corpus, params.max_bytes, layout.raw_text)
    write_table(layout.reports("download"), "summary", record)
    click.echo(f"corpus {record['name']}: {quantity(record['bytes'], 'byte')}")
    clear_stale_runs(layout)


if __name__ == "__main__":
    main()
