"""Get one corpus, verified by its SHA-256."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.download.settings import DownloadParams
from seqlm.pipeline.harness import stage, warn


@stage()
def main(layout: Layout) -> None:
    """Get one corpus, verified by its SHA-256.

    A registered corpus that has already been downloaded is kept. Otherwise the stage looks for it
    in data, in the folder that SEQLM_DATA_DIR names, in the cache, then at its URLs. A user's own
    file is copied.
    """
    from seqlm.core.files import write_table
    from seqlm.core.progress import count_noun
    from seqlm.pipeline.download.corpora import get_corpus
    from seqlm.pipeline.download.stale_runs import clear_stale_runs

    record = get_corpus(layout, load(layout.params, "download", DownloadParams), warn)
    write_table(layout.reports("download"), "summary", record)
    if record["fallback"]:
        warn(
            f"all results will be those of {record['name']!r}. Once {record['requested']} can be "
            "had, `dvc repro` makes its results; `make restore` goes back to those of the last "
            "commit. With download.fallback: null the pipeline stops instead"
        )
    click.echo(f"corpus {record['name']}: {count_noun(record['bytes'], 'byte')}")
    clear_stale_runs(layout, click.echo, warn)


if __name__ == "__main__":
    main()
