"""Threads that work on one minibatch together, in compiled code that meets at barriers.

A minibatch takes some milliseconds. Waking a sleeping thread takes a tenth of one, and on a virtual
machine a processor that slept for an instant may run a third slower afterwards. So the threads of a
team wait by spinning. After a third of a millisecond they let other threads that want the processor
go first, which may be the very one that is waited for; and if no minibatch comes for a long time,
they sleep. What the threads wait for are numbers in an array, read and changed atomically.
"""

import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry, jit_inline, jit_internal
from seqlm.networks.compiled.tiles import ROWS

Sync = NDArray[np.int64]

_CACHE_LINE = 8
"""Numbers of a cache line: each number that threads wait for has one of its own."""
_TASKS_ANNOUNCED, _ARRIVALS, _STOP = (index * _CACHE_LINE for index in range(3))
"""Places in the array."""
_SPINS, _YIELDS = 60_000, 60_000
"""Turns of waiting before the first yield, a third of a millisecond, and from there before the
first nap: some hundredths of a second, longer than what an optimiser does between two
minibatches."""
YIELD, SLEEP, _NAP = (
    ("SwitchToThread", "Sleep", 5) if sys.platform == "win32" else ("sched_yield", "usleep", 5_000)
)
"""The system's functions that let other threads go first and that sleep, and 5 milliseconds as the
latter counts."""
_yield = types.ExternalFunction(YIELD, types.int32())
_sleep = types.ExternalFunction(SLEEP, types.int32(types.int32))


class Member(NamedTuple):
    """One of the threads of a team."""

    thread: int
    num_threads: int
    sync: Sync


@intrinsic
def _fetch_add(_typing: Any, sync: Any, _place: Any, _amount: Any) -> Any:
    """Add atomically to a number of the array and return what it was."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        return builder.atomic_rmw("add", pointer, values[2], "seq_cst")

    return types.int64(sync, types.int64, types.int64), generate


def new_team(num_threads: int) -> list[Member]:
    """Return the members of a team."""
    sync = np.zeros(3 * _CACHE_LINE, np.int64)
    return [Member(thread, num_threads, sync) for thread in range(num_threads)]


@jit_internal
def _wait(turns: int) -> None:
    """Wait for a moment, the longer the more turns of waiting there were."""
    if turns > _SPINS + _YIELDS:
        _sleep(np.int32(_NAP))
    elif turns > _SPINS:
        _yield()


@jit_internal
def barrier(member: Member) -> None:
    """Wait until all threads are here, or the team stops."""
    num_threads, sync = member.num_threads, member.sync
    arrived = _fetch_add(sync, _ARRIVALS, 1)
    all_arrived = (arrived // num_threads + 1) * num_threads
    turns = 0
    while _fetch_add(sync, _ARRIVALS, 0) < all_arrived and not _fetch_add(sync, _STOP, 0):
        turns += 1
        _wait(turns)


@jit_entry
def _fetch_add_from_python(sync: Sync, place: int, amount: int) -> int:
    return _fetch_add(sync, place, amount)


@jit_inline
def share(count: int, step: int, member: Member) -> tuple[int, int]:
    """Return where a thread's part of ``count`` things begins and ends, cut at multiples of
    ``step``."""
    steps, thread, num_threads = (count + step - 1) // step, member.thread, member.num_threads
    first, last = steps * thread // num_threads, steps * (thread + 1) // num_threads
    return min(first * step, count), min(last * step, count)


@jit_internal
def wait_for_task(member: Member, number: int) -> bool:
    """Wait until task ``number`` is announced; return false when the team stops.

    Thread 0 announces the tasks. It is called once for each, so for it every task is number 1.
    """
    if member.thread == 0:
        return number == 1
    turns, sync = 0, member.sync
    while _fetch_add(sync, _TASKS_ANNOUNCED, 0) < number:
        if _fetch_add(sync, _STOP, 0):
            return False
        turns += 1
        _wait(turns)
    return True


class Team:
    """Threads, the caller's among them, that do the same compiled work on the same arrays again and
    again."""

    def __init__(self, num_threads: int, serve: Callable[..., None], buffers: Any) -> None:
        """Start the other threads.

        ``serve(member, buffers)`` is compiled code that does a thread's part of every task that
        :func:`wait_for_task` announces.
        """
        self.buffers, self._serve, self._members = buffers, serve, new_team(num_threads)
        self._sync = self._members[0].sync
        self._failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(member,), daemon=True)
            for member in self._members[1:]
        ]
        for thread in self._threads:
            thread.start()

    def run(self) -> None:
        """Do one task, all threads together. Raises what a thread raised."""
        _fetch_add_from_python(self._sync, _TASKS_ANNOUNCED, 1)
        self._serve(self._members[0], self.buffers)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the other threads."""
        _fetch_add_from_python(self._sync, _STOP, 1)
        for thread in self._threads:
            thread.join()

    def _work(self, member: Member) -> None:
        try:
            self._serve(member, self.buffers)
        except Exception as error:
            # The others would wait for this thread at the next barrier.
            self._failure = error
            _fetch_add_from_python(self._sync, _STOP, 1)


def split_rows(num_rows: int, num_threads: int) -> list[tuple[int, int]]:
    """Return where each thread's part of some rows begins and ends: less than a tile is not worth a
    thread."""
    count = max(min(num_threads, num_rows // ROWS), 1)
    bounds = [num_rows // ROWS * number // count * ROWS for number in range(count)] + [num_rows]
    return list(itertools.pairwise(bounds))
