"""Networks that learn side by side, each in a thread of its own."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from seqlm.rnn.network import Network

T = TypeVar("T")
R = TypeVar("R")


def threads_for(network: Network) -> int:
    """Return how many copies of a network may learn at once: on a CPU one for each of PyTorch's threads, else one.

    A single text gives one thread enough to do, and hardly more than one.
    """
    on_cpu = next(iter(network.parameters())).device.type == "cpu"
    return torch.get_num_threads() if on_cpu else 1


def map_in_threads(function: Callable[[T], R], items: Iterable[T], num_threads: int) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, from threads in which PyTorch has no others.

    One thread is the caller's, and PyTorch stays as it is.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(num_threads) as pool:
            yield from pool.map(function, items)
    finally:
        torch.set_num_threads(before)
