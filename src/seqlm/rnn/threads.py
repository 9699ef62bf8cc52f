"""Copies of a network that learn side by side, each in a thread of its own."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch

from seqlm.core.threads import imap

T = TypeVar("T")
R = TypeVar("R")


def imap_one_thread_each(function: Callable[[T], R], items: Iterable[T], device: torch.device) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, each computed by PyTorch with one thread.

    On a CPU as many are computed at once as PyTorch has threads: a single text hardly gives it more than one thread's
    work. On other devices they follow one another, and PyTorch stays as it is.
    """
    num_threads = torch.get_num_threads()
    if device.type != "cpu" or num_threads == 1:
        yield from map(function, items)
        return
    torch.set_num_threads(1)
    try:
        yield from imap(function, items, num_threads)
    finally:
        torch.set_num_threads(num_threads)
