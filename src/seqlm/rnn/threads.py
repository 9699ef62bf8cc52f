"""Work that several threads of this process share."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

_local = threading.local()
"""In a thread of :func:`map_in_threads`: ``is_over``, an event that is set when nobody waits for its work any more."""


def threads_for(device: torch.device) -> int:
    """Return how many copies of a network on a device may learn at once: on a CPU one per thread of PyTorch, else one.

    A single text keeps one thread busy, but hardly more than one.
    """
    return torch.get_num_threads() if device.type == "cpu" else 1


def map_in_threads(function: Callable[[T], R], items: Iterable[T], num_threads: int) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, from threads in which PyTorch uses no others.

    If ``num_threads`` is 1, the caller does the work, and PyTorch stays as it is. If one thread fails, or the caller
    is interrupted, the others end at their next call of :func:`raise_if_cancelled`.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    is_over = threading.Event()

    def work(item: T) -> R:
        _local.is_over = is_over
        return function(item)

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(num_threads) as pool:
            try:
                yield from pool.map(work, items)
            finally:
                is_over.set()
    finally:
        torch.set_num_threads(before)


def raise_if_cancelled() -> None:
    """Raise CancelledError in a thread of :func:`map_in_threads` whose work nobody waits for any more."""
    is_over: threading.Event | None = getattr(_local, "is_over", None)
    if is_over is not None and is_over.is_set():
        raise CancelledError
