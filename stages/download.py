"""Get one corpus, verified by its SHA-256."""

import environment  # noqa: F401

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.pipeline.download.settings import DownloadParams
from seqlm.pipeline.harness import stage, warn


@stage()
def main(layout: Layout) -> None:
    """Get one corpus, verified by its SHA-256.

    A registered corpus that is already here is kept. Otherwise the stage looks for it in data, in
    the folder that SEQLM_DATA_DIR names, in the cache, then at its URLs. A user's own file is
    copied.
    """
    import pooch

    from seqlm.core.files import write_table
    from seqlm.core.progress import count_noun
    from seqlm.pipeline.download.corpora import (
        Corpus,
        copy_text_file,
        fetch_registered,
        is_registered,
        locate_or_download,
    )

    params = load(layout.params, "download", DownloadParams)
    registry = load(layout.registry, "corpora", dict[str, Corpus])
    if is_registered(params.corpus, registry, layout.root):
        folders = [
            layout.sample.parent,
            *map(Path, filter(None, [os.environ.get("SEQLM_DATA_DIR")])),
        ]
        find = partial(
            locate_or_download, folders=folders, cache=Path(pooch.os_cache("seqlm")), log=warn
        )
        record = fetch_registered(
            params.corpus, registry, params.fallback, layout.raw_text, find, warn
        )
    else:
        record = copy_text_file(layout.root / params.corpus, layout.raw_text)
    write_table(layout.reports("download"), "summary", record)
    if record["fallback"]:
        warn(
            f"all results will be those of {record['name']!r}. Once {record['requested']} can be "
            "had, `dvc repro` "
            "makes its results; `make restore` goes back to those of the last commit. With "
            "download.fallback: null "
            "the pipeline stops instead"
        )
    click.echo(f"corpus {record['name']}: {count_noun(record['bytes'], 'byte')}")
    clear_stale_runs(layout)


def clear_stale_runs(layout: Layout) -> None:
    """Under DVC, remove the results and checkpoints of runs that ``params.yaml`` no longer has, and
    say so.

    Their stages are removed from ``dvc.lock`` too, so that it can be committed. Only a stage that
    always runs may call this: DVC takes the outputs of any other from its run cache if settings
    return to what they were.
    """
    from seqlm.core.files import remove_others
    from seqlm.pipeline.dvc_watchdog import is_under_dvc

    if not is_under_dvc():
        return
    try:
        runs = list(load(layout.params, "runs", dict[str, Any]))
    except ParamsError:
        runs = []
    if not runs:  # the stage configure refuses wrong runs
        return
    stale = remove_others(
        runs, layout.runs, layout.run_scores, layout.reports("train"), layout.checkpoints
    )
    for path in stale:
        click.echo(f"removed {path}: no such run is left")
    lock_file = layout.root / "dvc.lock"
    if stale and lock_file.exists():
        _prune_lock(lock_file, runs)


def _prune_lock(lock_file: Path, runs: list[str]) -> None:
    """Remove the stages of other runs than ``runs`` from a ``dvc.lock``, while no DVC writes to
    it."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.utils.serialize import modify_yaml

    try:
        # A DVC that waits for a stage does not hold the lock, and reads the file again before it
        # writes to it.
        with Repo(str(lock_file.parent)) as repo, repo.lock, modify_yaml(str(lock_file)) as lock:
            for name in list(lock.get("stages", {})):
                family, _, run = name.partition("@")
                if family in ("train", "score") and run not in runs:
                    del lock["stages"][name]
                    click.echo(f"removed {name} from {lock_file.name}")
    except DvcException as error:
        warn(
            f"{lock_file.name} is left as it is ({error}): `python tools/check_lock.py --prune` "
            "removes stale stages"
        )


if __name__ == "__main__":
    main()
