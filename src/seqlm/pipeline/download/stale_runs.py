"""Removing what is left of runs that ``params.yaml`` no longer has."""

from pathlib import Path
from typing import Any

from seqlm.core.errors import ParamsError
from seqlm.core.files import remove_others
from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.core.settings import load
from seqlm.pipeline.dvc_watchdog import is_under_dvc


def clear_stale_runs(layout: Layout, log: Log, warn: Log) -> None:
    """Under DVC, remove the results and checkpoints of runs that ``params.yaml`` no longer has, and
    say so.

    Their stages are removed from ``dvc.lock`` too, so that it can be committed. Only a stage that
    always runs may call this: DVC takes the outputs of any other from its run cache if settings
    return to what they were. Wrong runs, which the stage configure refuses, remove nothing.
    """
    try:
        runs = list(load(layout.params, "runs", dict[str, Any])) if is_under_dvc() else []
    except ParamsError:
        return
    folders = layout.runs, layout.run_scores, layout.reports("train"), layout.checkpoints
    stale = remove_others(runs, *folders) if runs else []
    for path in stale:
        log(f"removed {path}: no such run is left")
    lock_file = layout.root / "dvc.lock"
    if stale and lock_file.exists():
        _prune(lock_file, runs, log, warn)


def _prune(lock_file: Path, runs: list[str], log: Log, warn: Log) -> None:
    """Remove the stages of other runs from a ``dvc.lock``, while no DVC writes to it."""
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
                    log(f"removed {name} from {lock_file.name}")
    except DvcException as error:
        warn(
            f"{lock_file.name} is left as it is ({error}): `python tools/check_lock.py --prune` "
            "removes stale stages"
        )
