"""Ends a stage with the DVC that started it: one that trained on would write files that nobody
waits for."""

import os
import threading
import time
from contextlib import suppress

import psutil

_POLL_S = 0.5
_MARK = "DVC_STAGE"
"""DVC sets this variable for a stage's command."""
_RUN_DVC = ("python", "pypy", "dvc")
_ADOPT_ORPHANS = {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init"}
"""Besides the system's first process: the first one of a user's session or of a container."""


def is_under_dvc() -> bool:
    """Whether DVC started this process. A stage that was started by hand may outlive its
    terminal."""
    return _MARK in os.environ


def end_with_dvc(exit_code: int) -> bool:
    """End this process as soon as ``dvc repro`` is gone; return whether DVC is running now."""
    watched = _ancestors_up_to_dvc()
    if watched is None:
        return False

    def watch() -> None:
        while _ancestors()[: len(watched)] == watched:
            time.sleep(_POLL_S)
        os._exit(exit_code)

    threading.Thread(target=watch, name="dvc-watchdog", daemon=True).start()
    return True


def _ancestors_up_to_dvc() -> list[psutil.Process] | None:
    """Return the ancestors of this process up to DVC; None if DVC ended before this process could
    look.

    Everything that DVC starts, directly or not, has DVC_STAGE in its environment. The next
    ancestor is DVC (a Python, or a program of its own name), or a process that adopts orphans
    (then DVC is gone), or another program that hides DVC, such as srun on another machine
    (then the visible ancestors are all that can be watched).
    """
    ancestors = _ancestors()
    for number, process in enumerate(ancestors):
        with suppress(psutil.Error):
            shown = process.as_dict(["name", "environ"])
            name, environment = (shown["name"] or "").lower(), shown["environ"] or {}
            if environment.get(_MARK) == os.environ[_MARK]:
                continue
            if any(word in name for word in _RUN_DVC):
                return ancestors[: number + 1]
            if process.pid == 1 or name in _ADOPT_ORPHANS:
                return None
            if environment:  # an empty one is hidden by the system, and DVC may be further up
                return ancestors[: number + 1]
    return (
        None if os.name == "nt" and ancestors else ancestors
    )  # Windows gives orphans no other parent


def _ancestors() -> list[psutil.Process]:
    """Return the ancestors of this process; none if the system hides them, like Linux without
    /proc."""
    with suppress(psutil.Error, OSError):
        return list(psutil.Process().parents())
    return []
