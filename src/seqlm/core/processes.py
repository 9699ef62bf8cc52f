"""Work that is shared by several processes on this machine."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from seqlm.core.cpu_contention import num_processors
from seqlm.core.errors import MachineError

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
