"""Networks that learn side by side, each in a thread of its own."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TypeVar

import torch

from seqlm.rnn.network import Network

T = TypeVar("T")
R = TypeVar("R")

_local = threading.local()
"""Of a thread that works for :func:`map_in_threads`: ``is_over``, an event, set when nobody waits for it any more."""


def threads_for(network: Network) -> int:
    """Return how many copies of a network may learn at once: on a CPU one for each of PyTorch's threads, else one.

    A single text gives one thread enough to do, and hardly more than one.
    """
    on_cpu = next(iter(network.parameters())).device.type == "cpu"
    return torch.get_num_threads() if on_cpu else 1


def map_in_threads(function: Callable[[T], R], items: Iterable[T], num_threads: int) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, from threads in which PyTorch has no others.

    One thread is the caller's, and PyTorch stays as it is. When one fails, or the caller is interrupted, the
    others end at their next call of :func:`go_on`.
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


def go_on() -> None:
    """Raise CancelledError in a thread whose work nobody waits for any more."""
    is_over: threading.Event | None = getattr(_local, "is_over", None)
    if is_over is not None and is_over.is_set():
        raise CancelledError
