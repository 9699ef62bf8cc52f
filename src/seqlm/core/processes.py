"""Work that several processes of this machine share."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import TypeVar

from seqlm.core.errors import MachineError

T = TypeVar("T")
R = TypeVar("R")

_MOST = 8


def default_processes() -> int:
    """Return how many processes are worth their start: one for each processor, eight at most.

    Only Linux copies a process that has everything loaded; elsewhere each would load it again, which
    takes longer than it saves.
    """
    if sys.platform == "linux":
        with suppress(ImportError, OSError):  # some containers have no semaphores that processes share
            get_context().Lock()
            return min(os.cpu_count() or 1, _MOST)
    return 1


def map_in_processes(function: Callable[[T], R], items: Iterable[T], num_processes: int) -> list[R]:
    """Return ``function(item)`` for each item, in order; with one process in this one.

    The function, which stands in a module, its items and its results travel between processes. What it
    raises is raised here. Raises MachineError where a process is ended from outside.
    """
    if num_processes == 1:
        return [function(item) for item in items]
    try:
        with ProcessPoolExecutor(num_processes, get_context("fork"), _end_with_parent) as pool:
            return list(pool.map(function, items))
    except BrokenProcessPool as error:
        raise MachineError(
            "one of the processes that shared the work was ended from outside, perhaps for want of memory: free some, "
            "then run again"
        ) from error


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: it would wait for work forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends its processes

    def watch() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(MachineError.exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
