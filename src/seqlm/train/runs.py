"""The runs that have resolved settings, and what is left of runs that no longer exist.

A run that one experiment added and the next one dropped leaves its folders, and a stage
that depends on the folder above would lock a hash that no fresh clone has.
"""

import shutil
from pathlib import Path

from seqlm.core.errors import DataError


def run_names(configs: Path) -> list[str]:
    """Return the names of the runs that have a resolved config, in order. Raises DataError where there is none."""
    names = sorted(path.stem for path in configs.glob("*.json"))
    if not names:
        raise DataError(f"{configs}: holds no run's settings: run the configure stage")
    return names


def remove_ghosts(runs: list[str], *folders: Path) -> list[Path]:
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
