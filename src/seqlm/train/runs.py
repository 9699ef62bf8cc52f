"""The runs that have resolved settings, and leftovers of runs that no longer exist.

A run that one experiment added and the next one dropped leaves its folders. A stage that depends on their parent folder
would then lock a hash that no fresh clone has.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_checksummed, read_json
from seqlm.core.layout import Layout
from seqlm.core.settings import check
from seqlm.train.settings import CONFIG_FORMAT, RunConfig


def run_names(configs: Path) -> list[str]:
    """Return the names of the runs that have resolved settings, in order. Raises DataError if there is none."""
    names = sorted(path.stem for path in configs.glob("*.json"))
    if not names:
        raise DataError(f"{configs}: holds no run's settings: run the configure stage")
    return names


def read_config(path: Path) -> RunConfig:
    """Return a run's settings as ``configure`` resolved them, or as a user wrote them, without a checksum.

    Raises ParamsError if there is no such run or a setting is wrong, and DataError for a file that is broken, was
    changed since it was written, or belongs to another run.
    """
    if not path.exists():
        raise ParamsError(f"there is no run {path.stem!r}, only {', '.join(run_names(path.parent))}")
    value = read_json(path)
    if not isinstance(value, dict) or {"format", "checksum"} & set(value):
        value = read_checksummed(path, CONFIG_FORMAT, "run the configure stage again")
        del value["format"]
    config = check(value, path.stem, RunConfig, source=str(path))
    if config.run != path.stem:
        raise DataError(f"{path}: belongs to the run {config.run!r}: run the configure stage again")
    return config


def training_summaries(layout: Layout, runs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the summary of each run's training, as :mod:`seqlm.train.history` makes it."""
    return {run: read_json(layout.reports("train", run, "summary.json")) for run in runs}


def remove_stale_runs(runs: list[str], *folders: Path) -> list[Path]:
    """Remove the entries of ``folders`` that belong to none of ``runs``; return what was removed.

    Raises ValueError if there are no runs: then every entry would be stale.
    """
    if not runs:
        raise ValueError("no runs: every entry would be stale")
    entries = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    stale = [path for path in entries if path.name not in runs]
    for path in stale:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return stale
