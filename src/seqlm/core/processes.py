"""This process among others: worker processes, DVC above it, and other work on the same processors."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeVar

import psutil

from seqlm.core.errors import MachineError

FEW_SPINS = {"GOMP_SPINCOUNT": "100000"}
"""Spin about a third as long as the default: best beside one busy process on each processor."""
NO_SPINS = {"GOMP_SPINCOUNT": "0"}
"""Sleep at once: best if several processes want each processor, because the thread that is waited for then
gets none for longer than any spinning lasts."""
_SETTINGS = FEW_SPINS.keys() | {"OMP_WAIT_POLICY", "KMP_BLOCKTIME"}
_MALLOC = {-1: 2**31 - 1, -4: 0, -8: 1}
"""Settings in malloc.h: M_TRIM_THRESHOLD, the most bytes kept; M_MMAP_MAX and M_ARENA_MAX, one heap for all arrays."""
_SAMPLE_S = 0.1
_HIGH_LOAD = 0.25
"""Fraction of the processors from which other processes' load is high."""
_CROWD = 2.5
"""Average number of processes that want each processor, over the last minute, from which no spinning pays."""


def num_processors() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shorten_spinning() -> None:
    """Let PyTorch's threads spin for a shorter time if other processes' load is high.

    Call this before PyTorch is imported, which reads the setting once. A user's own setting stays.
    """
    # Some systems do not show other processes.
    with suppress(psutil.Error, OSError):
        if _SETTINGS.isdisjoint(os.environ) and psutil.cpu_percent(_SAMPLE_S) >= 100 * _HIGH_LOAD:
            is_crowd = psutil.getloadavg()[0] >= _CROWD * (psutil.cpu_count() or 1)
            os.environ.update(NO_SPINS if is_crowd else FEW_SPINS)


def keep_freed_memory() -> None:
    """Let the C library give freed memory to later arrays, instead of returning it to the system at once.

    The system clears all memory that it hands out, which can take longer than the work that needs it. Call this before
    threads start. Only glibc has these settings.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        for setting, value in _MALLOC.items():
            mallopt(setting, value)


class OtherLoad:
    """Measures how much of the processors other processes use, since the last measurement."""

    def __init__(self) -> None:
        """Start the first measurement."""
        self._before = _processor_seconds()

    def fraction(self) -> float:
        """Return the fraction of the processors that others used; 0 if the system does not tell."""
        before, self._before = self._before, _processor_seconds()
        total, busy, own = (now - then for now, then in zip(self._before, before, strict=True))
        return max(busy - own, 0.0) / total if total > 0 else 0.0

    def is_high(self) -> bool:
        """Whether others used a quarter of the processors or more."""
        return self.fraction() >= _HIGH_LOAD


def _processor_seconds() -> tuple[float, float, float]:
    """Return the processors' seconds since the system started: all, busy, and used by this process."""
    with suppress(psutil.Error, OSError):
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        # Linux counts the time of guests as that of users too.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return total, total - times.idle - getattr(times, "iowait", 0.0), own.user + own.system
    return 0.0, 0.0, 0.0


T = TypeVar("T")
R = TypeVar("R")

_MAX_PROCESSES = 8


def default_processes() -> int:
    """Return how many processes are worth starting: one for each processor, eight at most.

    Only Linux copies a process with all that it has loaded. Elsewhere each process would load it
    again, which takes longer than it saves.
    """
    if sys.platform == "linux":
        with suppress(ImportError, OSError):  # some containers have no semaphores that processes can share
            get_context().Lock()
            return min(num_processors(), _MAX_PROCESSES)
    return 1


def map_in_processes(function: Callable[[T], R], items: Iterable[T], num_processes: int) -> list[R]:
    """Return ``function(item)`` for each item, in order; one process means this one.

    The processes are copies of this one and have the function with all that it holds: only items and results
    are sent. PyTorch has one thread in each. An exception of the function is raised here. Raises MachineError
    if a process is killed.
    """
    work_items = list(items)
    num_processes = min(num_processes, len(work_items))
    if num_processes <= 1:
        return [function(item) for item in work_items]
    try:
        with ProcessPoolExecutor(num_processes, get_context("fork"), _start_worker, (function,)) as pool:
            return list(pool.map(_work, work_items))
    except BrokenProcessPool as error:
        raise MachineError(
            "one of the processes that shared the work was killed, perhaps because memory ran out: free some, "
            "then run again"
        ) from error


_task: Callable[[Any], Any]
"""The function of a worker process."""


def _work(item: Any) -> Any:
    return _task(item)


def _start_worker(function: Callable[[Any], Any]) -> None:
    """Set up a worker process. It ends with the process that started it; otherwise it would wait forever for work."""
    global _task
    _task = function
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise each worker prints a traceback on Ctrl-C
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # the copy has none of the threads of the original's pool

    def watch() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(MachineError.exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


_POLL_S = 0.5
_MARK = "DVC_STAGE"
"""DVC sets this variable for a stage's command."""
_RUN_DVC = ("python", "pypy", "dvc")
_ADOPT_ORPHANS = {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init"}
"""Besides the system's first process: the first one of a user's session or of a container."""


def is_under_dvc() -> bool:
    """Whether DVC started this process. A stage that was started by hand may outlive its terminal."""
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
    """Return the ancestors of this process up to DVC; None if DVC ended before this process could look.

    Everything that DVC starts, directly or not, has DVC_STAGE in its environment. The next
    ancestor is DVC (a Python, or a program of its own name), or a process that adopts orphans
    (then DVC is gone), or another program that hides DVC, such as srun on another machine
    (then the visible ancestors are all that can be watched).
    """
    ancestors = _ancestors()
    for number, process in enumerate(ancestors):
        names, environment = _names_and_environment(process)
        if environment.get(_MARK) == os.environ[_MARK]:
            continue
        if any(word in name for name in names for word in _RUN_DVC):
            return ancestors[: number + 1]
        if process.pid == 1 or _ADOPT_ORPHANS & names:
            return None
        if environment:  # an empty one is hidden by the system, and DVC may be further up
            return ancestors[: number + 1]
    return None if os.name == "nt" and ancestors else ancestors  # Windows gives orphans no other parent


def _ancestors() -> list[psutil.Process]:
    """Return the ancestors of this process; none if the system hides them, like Linux without /proc."""
    with suppress(psutil.Error, OSError):
        return list(psutil.Process().parents())
    return []


def _names_and_environment(process: psutil.Process) -> tuple[set[str], dict[str, str]]:
    """Return the names of a process and its environment, as far as the system shows them."""
    with suppress(psutil.Error, OSError):
        shown = process.as_dict(["name", "exe", "environ"])
        return {Path(shown[key] or "").name.lower() for key in ("name", "exe")}, shown["environ"] or {}
    return set(), {}
