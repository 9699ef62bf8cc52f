"""Work side by side: tasks in their order on threads, and chunks of a stream on Dask, here or on a cluster."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlm.core.cpu_contention import num_processors
from seqlm.core.errors import NetworkError

S = TypeVar("S")
T = TypeVar("T")

_MOST_THREADS = 8
_CONNECT_S = 10
"""Seconds after which a scheduler that does not answer is given up."""


def imap(tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Yield what tasks give, in their order, while threads work on some of those that follow."""
    # Each thread has a block in memory. Dask would know of quotas too, but takes time to import, and /proc.
    num_threads = min(num_processors(), _MOST_THREADS)
    with ThreadPoolExecutor(num_threads) as pool:
        running: deque[Future[T]] = deque()
        for task in tasks:
            running.append(pool.submit(task))
            if len(running) > 2 * num_threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def for_each(action: Callable[[S], object], items: Iterable[S]) -> None:
    """Call a function for each of some items, on threads; whatever it raises ends this too."""
    tasks = [partial(action, item) for item in items]
    if len(tasks) == 1:  # of a small text, whose models are made many times over: threads would take longer to start
        tasks[0]()
        return
    for _ in imap(tasks):
        pass


def num_local_threads() -> int:
    """Return how many chunks Dask works on at once on this machine."""
    from dask.system import CPU_COUNT

    return int(CPU_COUNT)


def map_chunks(
    function: Callable[[NDArray[Any]], T], chunks: Iterable[NDArray[Any]], scheduler: str | None
) -> Iterator[T]:
    """Yield ``function(chunk)`` for each chunk, in no set order, a few chunks at a time.

    ``scheduler`` is the address of a Dask scheduler, whose workers need this package;
    None works with threads here. Raises NetworkError where the scheduler does not answer.
    """
    if scheduler is None:
        yield from _on_threads(function, chunks)
    else:
        yield from _on_cluster(function, chunks, scheduler)


def _on_threads(function: Callable[[NDArray[Any]], T], chunks: Iterable[NDArray[Any]]) -> Iterator[T]:
    from dask.base import compute
    from dask.delayed import delayed

    count = delayed(function, pure=False, traverse=False)
    waiting = iter(chunks)
    while batch := list(islice(waiting, num_local_threads())):
        yield from compute(*(count(chunk) for chunk in batch), scheduler="threads")


def _on_cluster(function: Callable[[NDArray[Any]], T], chunks: Iterable[NDArray[Any]], scheduler: str) -> Iterator[T]:
    from distributed import Client, as_completed

    try:
        client = Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NetworkError(
            f"the Dask scheduler at {scheduler} does not answer: start it, or unset its address"
        ) from error
    with client:
        waiting = iter(chunks)

        def submit(chunk: NDArray[Any]) -> Any:
            # Scattered on its own, the chunk travels to a worker as plain bytes, not within the task.
            data = client.scatter(np.ascontiguousarray(chunk), hash=False)
            return client.submit(function, data, pure=False)

        num_at_once = 2 * max(sum(client.nthreads().values()), 1)
        running = as_completed([submit(chunk) for chunk in islice(waiting, num_at_once)], loop=client.loop)
        for future in running:
            yield future.result()
            for chunk in islice(waiting, 1):
                running.add(submit(chunk))
