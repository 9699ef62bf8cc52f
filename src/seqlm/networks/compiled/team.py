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
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry, jit_inline, jit_internal
from seqlm.networks.compiled.tiles import ROWS

Control = NDArray[np.int64]

_CACHE_LINE = 8
"""Numbers of a cache line: each number that threads wait for has one of its own."""
_TASK, _ARRIVALS, _STOP = (index * _CACHE_LINE for index in range(3))
"""Places in the control array."""
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


@intrinsic
def _fetch_add(_typing: Any, control: Any, _place: Any, _amount: Any) -> Any:
    """Add atomically to a number of the control array and return what it was."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        return builder.atomic_rmw("add", pointer, values[2], "seq_cst")

    return types.int64(control, types.int64, types.int64), generate


def new_control() -> Control:
    """Return the array by which the members of a team meet."""
    return np.zeros(3 * _CACHE_LINE, np.int64)


@jit_internal
def _wait(turns: int) -> None:
    """Wait for a moment, the longer the more turns of waiting there were."""
    if turns > _SPINS + _YIELDS:
        _sleep(np.int32(_NAP))
    elif turns > _SPINS:
        _yield()


@jit_internal
def _load(control: Control, place: int) -> int:
    return _fetch_add(control, place, 0)


@jit_internal
def barrier(control: Control, size: int) -> None:
    """Wait until all ``size`` members are here, or the team stops."""
    arrived = _fetch_add(control, _ARRIVALS, 1)
    all_arrived = (arrived // size + 1) * size
    turns = 0
    while _load(control, _ARRIVALS) < all_arrived and not _load(control, _STOP):
        turns += 1
        _wait(turns)


@jit_entry
def _fetch_add_from_python(control: Control, place: int, amount: int) -> int:
    return _fetch_add(control, place, amount)


@jit_inline
def member_range(count: int, step: int, member: int, size: int) -> tuple[int, int]:
    """Return where a member's part of ``count`` things begins and ends, cut at multiples of
    ``step``."""
    steps = (count + step - 1) // step
    return min(steps * member // size * step, count), min(
        steps * (member + 1) // size * step, count
    )


@jit_internal
def wait_for_task(member: int, control: Control, number: int) -> bool:
    """Wait until task ``number`` is announced; return false when the team stops.

    Member 0 announces the tasks. It is called once for each, so for it every task is number 1.
    """
    if member == 0:
        return number == 1
    turns = 0
    while _load(control, _TASK) < number:
        if _load(control, _STOP):
            return False
        turns += 1
        _wait(turns)
    return True


class Team:
    """``size`` threads, the caller's among them, that do the same compiled work on the same arrays
    again and again."""

    def __init__(self, size: int, serve: Callable[..., None], buffers: Any) -> None:
        """Start the other threads.

        ``serve(member, size, control, buffers)`` is compiled code that does a member's part of
        every task that :func:`wait_for_task` announces.
        """
        self.buffers, self._serve, self.size = buffers, serve, size
        self._control = new_control()
        self._failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(member,), daemon=True)
            for member in range(1, size)
        ]
        for thread in self._threads:
            thread.start()

    def run(self) -> None:
        """Do one task, all members together. Raises what a member raised."""
        _fetch_add_from_python(self._control, _TASK, 1)
        self._serve(0, self.size, self._control, self.buffers)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the other threads."""
        _fetch_add_from_python(self._control, _STOP, 1)
        for thread in self._threads:
            thread.join()

    def _work(self, member: int) -> None:
        try:
            self._serve(member, self.size, self._control, self.buffers)
        except Exception as error:
            # The others would wait for this member at the next barrier.
            self._failure = error
            _fetch_add_from_python(self._control, _STOP, 1)


def split_rows(num_rows: int, num_threads: int) -> list[tuple[int, int]]:
    """Return where each thread's part of some rows begins and ends: less than a tile is not worth a
    thread."""
    count = max(min(num_threads, num_rows // ROWS), 1)
    bounds = [num_rows // ROWS * number // count * ROWS for number in range(count)] + [num_rows]
    return list(itertools.pairwise(bounds))
