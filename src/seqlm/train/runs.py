"""The runs that have resolved settings, and what is left of runs that no longer exist.

A run that one experiment added and the next one dropped leaves its folders, and a stage
that depends on the folder above would lock a hash that no fresh clone has.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqlm.core.errors import DataError
from seqlm.core.files import read_json
from seqlm.core.layout import Layout


def run_names(configs: Path) -> list[str]:
    """Return the names of the runs that have a resolved config, in order. Raises DataError where there is none."""
    names = sorted(path.stem for path in configs.glob("*.json"))
    if not names:
        raise DataError(f"{configs}: holds no run's settings: run the configure stage")
    return names


def training_summaries(layout: Layout, runs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the summary of each run's training, as :mod:`seqlm.train.history` makes it."""
    return {run: read_json(layout.reports("train", run, "summary.json")) for run in runs}


def remove_stale_runs(runs: list[str], *folders: Path) -> list[Path]:
    """Remove the entries of ``folders`` that belong to none of ``runs``; return what was removed.

    Raises ValueError where there are no runs: then everything would be a ghost.
    """
    if not runs:
        raise ValueError("no runs: every entry would be a ghost")
    ghosts = [
        path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()) if path.name not in runs
    ]
    for ghost in ghosts:
        if ghost.is_dir():
            shutil.rmtree(ghost)
        else:
            ghost.unlink()
    return ghosts
