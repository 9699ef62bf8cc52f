"""Work that threads of this process share."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MAX_THREADS = 8
_local = threading.local()
"""In a thread that works for :func:`imap`: ``is_over``, an event that is set when nobody waits for
its result."""


def default_threads() -> int:
    """Return how many threads are worth starting: one per processor that this process may use, at
    most eight."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _MAX_THREADS)


def imap(
    function: Callable[[T], R], items: Iterable[T], num_threads: int | None = None
) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, while threads work on the items that
    follow.

    Items are taken a few at a time, so they can be large and come from a generator. By default
    there are :func:`default_threads`; with one, the caller's own thread does the work. If a call
    raises, or the caller stops early, no further call begins, and running ones end at their next
    :func:`raise_if_cancelled`.
    """
    num_threads = num_threads or default_threads()
    if num_threads == 1:
        yield from map(function, items)
        return
    is_over = threading.Event()

    def work(item: T) -> R:
        _local.is_over = is_over
        return function(item)

    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > 2 * num_threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            is_over.set()
            for future in running:
                future.cancel()


def for_each(
    action: Callable[..., object], items: Iterable[tuple[Any, ...]], num_threads: int | None = None
) -> None:
    """Call a function with each tuple of arguments, on threads. A single call is made at once,
    without a thread."""
    waiting = list(items)
    for _ in imap(
        lambda one: action(*one),
        waiting,
        max(min(num_threads or default_threads(), len(waiting)), 1),
    ):
        pass


def raise_if_cancelled() -> None:
    """Raise CancelledError in a thread of :func:`imap` if nobody waits for its result any more."""
    is_over: threading.Event | None = getattr(_local, "is_over", None)
    if is_over is not None and is_over.is_set():
        raise CancelledError
