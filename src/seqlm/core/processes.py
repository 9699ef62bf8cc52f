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
from typing import Any, TypeVar

from seqlm.core.cpu_contention import num_processors
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
            return min(num_processors(), _MOST)
    return 1


def map_in_processes(function: Callable[[T], R], items: Iterable[T], num_processes: int) -> list[R]:
    """Return ``function(item)`` for each item, in order; with one process in this one.

    The processes are copies of this one, the function with all that it holds among them: items and results
    alone travel. PyTorch has one thread in each. What the function raises is raised here. Raises MachineError
    where a process is ended from outside.
    """
    waiting = list(items)
    num_processes = min(num_processes, len(waiting))
    if num_processes <= 1:
        return [function(item) for item in waiting]
    try:
        with ProcessPoolExecutor(num_processes, get_context("fork"), _begin, (function,)) as pool:
            return list(pool.map(_work, waiting))
    except BrokenProcessPool as error:
        raise MachineError(
            "one of the processes that shared the work was ended from outside, perhaps for want of memory: free some, "
            "then run again"
        ) from error


_task: Callable[[Any], Any]
"""What a process does with the items that it gets."""


def _work(item: Any) -> Any:
    return _task(item)


def _begin(function: Callable[[Any], Any]) -> None:
    """Get a new process ready. It ends when the one that started it is gone: it would wait for work forever."""
    global _task
    _task = function
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no lines about an interruption from every one
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # a copy has none of the threads that wait for work in this one

    def watch() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(MachineError.exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
