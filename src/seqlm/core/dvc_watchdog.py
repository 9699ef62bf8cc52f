"""The processes above a stage: it ends when DVC is gone.

A killed ``dvc repro`` leaves its child running, which would then write beside the next one's.
"""

import contextlib
import os
import threading
import time
from pathlib import Path

import psutil

_PARENT_POLL_S = 0.5
_MARK = "DVC_STAGE"
"""What DVC puts into the environment of a stage's command."""
_RUN_DVC = ("python", "pypy", "dvc")
_TAKE_IN_ORPHANS = {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init"}
"""Beside the system's first process: of a user's session, of a container."""


def is_under_dvc() -> bool:
    """Whether DVC started this process. Started by hand, a stage may outlive its terminal."""
    return _MARK in os.environ


def end_with_dvc(exit_code: int) -> bool:
    """End this process, from now on, when ``dvc repro`` is gone; return whether DVC is still there."""
    line = _line_to_dvc()
    if line is None:
        return False

    def watch() -> None:
        while _above()[: len(line)] == line:
            time.sleep(_PARENT_POLL_S)
        os._exit(exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
    return True


def _line_to_dvc() -> list[psutil.Process] | None:
    """Return the processes above this one up to DVC's; None where DVC went before this process could look.

    What DVC starts, and what that starts (a shell, torchrun, timeout), has DVC_STAGE in its
    environment. The next one up is DVC, a Python or a program of its own name; or who takes in
    orphans, and then DVC is gone; or another program, behind which DVC cannot be seen from
    here (srun's, on another machine), and then what can be seen is all that can be watched.
    """
    above = _above()
    for number, process in enumerate(above):
        names, environment = _look_at(process)
        if environment.get(_MARK) == os.environ[_MARK]:
            continue
        if any(word in name for name in names for word in _RUN_DVC):
            return above[: number + 1]
        if process.pid == 1 or _TAKE_IN_ORPHANS & set(names):
            return None
        if environment:  # else the system hides it, and DVC may be further up
            return above[: number + 1]
    return None if os.name == "nt" and above else above  # Windows gives orphans no other parent


def _above() -> list[psutil.Process]:
    """Return the processes above this one; none where the system does not show them, as Linux without /proc."""
    try:
        above: list[psutil.Process] = psutil.Process().parents()
        return above
    except (psutil.Error, OSError):
        return []


def _look_at(process: psutil.Process) -> tuple[list[str], dict[str, str]]:
    """Return the names of a process and its environment, as far as the system shows them."""
    names: list[str] = []
    environment: dict[str, str] = {}
    with contextlib.suppress(psutil.Error, OSError):
        names.append(process.name().lower())
        names.append(Path(process.exe()).name.lower())
    with contextlib.suppress(psutil.Error, OSError):
        environment = process.environ()
    return names, environment
