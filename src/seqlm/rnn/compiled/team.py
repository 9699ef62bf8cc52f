"""Threads that work on one minibatch together, in compiled code that meets at barriers.

A minibatch takes some milliseconds. Waking a sleeping thread takes a tenth of one, and on a virtual
machine a processor that slept for an instant may go on a third slower: so the threads of a team wait
awake, and nap only when they wait for long. Where other processes want the processors, waiting awake
would take them from the very thread that is waited for: then a team naps soon. When no minibatch
comes at all its threads sleep. What they wait on are numbers in an array, read and changed atomically.
"""

import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Self

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from seqlm.core.cpu_contention import OtherLoad
from seqlm.rnn.compiled.compiling import entry, inner, spliced

Control = NDArray[np.int64]

_LINE = 8
"""Numbers of a cache line: each number that is waited for has one of its own."""
_ROUND, _ARRIVALS, _STOP, _PATIENCE, _ASLEEP = (index * _LINE for index in range(5))
"""Places in the control array. From _ASLEEP on, one for each member."""
_LOOKS_ALONE, _LOOKS_BESIDE_OTHERS = 6_000_000, 60_000
"""Looks before a nap: about 30 milliseconds, longer than what an optimiser does between two minibatches; and a third of
a millisecond."""
_S_BETWEEN_LOOKS_AT_OTHERS = 1.0
_NAP, _NAP_LENGTH = ("Sleep", 0) if sys.platform == "win32" else ("usleep", 50)
"""The system's function that lets a thread sleep, in milliseconds or microseconds. Windows sleeps too long: 0 lets
another thread have the processor, if one waits for it."""
_NAPS_BEFORE_SLEEP = 300
"""After some hundredths of a second."""


@intrinsic
def _add(_typing: Any, control: Any, _place: Any, _amount: Any) -> Any:
    """Add atomically to a number of the control array and return what it was."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        return builder.atomic_rmw("add", pointer, values[2], "seq_cst")

    return types.int64(control, types.int64, types.int64), generate


@intrinsic
def _nap(_typing: Any) -> Any:
    """Sleep for some ten-thousandths of a second."""

    def generate(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        function = cgutils.get_or_insert_function(builder.module, kind, _NAP)
        return builder.call(function, [ir.Constant(ir.IntType(32), _NAP_LENGTH)])

    return types.int32(), generate


def new_control(size: int) -> Control:
    """Return the numbers by which ``size`` members of a team meet."""
    control = np.zeros(_ASLEEP + size * _LINE, np.int64)
    control[_PATIENCE] = _watch().looks()
    return control


class _Watch:
    """Remembers for a second whether others want the processors."""

    def __init__(self) -> None:
        self._neighbours, self._next_look = OtherLoad(), time.monotonic() + _S_BETWEEN_LOOKS_AT_OTHERS
        self._looks = _LOOKS_ALONE

    def looks(self) -> int:
        """Return after how many looks a thread naps."""
        if time.monotonic() >= self._next_look:
            self._looks = _LOOKS_BESIDE_OTHERS if self._neighbours.is_high() else _LOOKS_ALONE
            self._next_look = time.monotonic() + _S_BETWEEN_LOOKS_AT_OTHERS
        return self._looks


@cache
def _watch() -> _Watch:
    return _Watch()


@inner
def _look(control: Control, place: int) -> int:
    return _add(control, place, 0)


@inner
def barrier(control: Control, size: int) -> None:
    """Wait until all ``size`` members are here, or the team stops."""
    arrived = _add(control, _ARRIVALS, 1)
    all_arrived = (arrived // size + 1) * size
    looks = 0
    while _look(control, _ARRIVALS) < all_arrived and not _look(control, _STOP):
        looks += 1
        if looks > control[_PATIENCE]:
            _nap()


@entry
def _announce(control: Control) -> None:
    _add(control, _ROUND, 1)


@entry
def _stop(control: Control) -> None:
    _add(control, _STOP, 1)


@entry
def _set_asleep(control: Control, member: int, change: int) -> int:
    return _add(control, _ASLEEP + member * _LINE, change)


@spliced
def share(count: int, step: int, member: int, size: int) -> tuple[int, int]:
    """Return the first and the last of a member's share of ``count`` things, cut at multiples of ``step``."""
    steps = (count + step - 1) // step
    return min(steps * member // size * step, count), min(steps * (member + 1) // size * step, count)


@inner
def await_round(member: int, control: Control, done: int) -> int:
    """Return the number of the round after ``done``, once it is announced.

    Returns ``done`` itself when no round comes for some time, and -1 when the team stops. Member 0, who
    announces the rounds, gets round 1 at once, and no other.
    """
    if member == 0:
        return 1
    looks = naps = 0
    while _look(control, _ROUND) == done:
        if _look(control, _STOP):
            return -1
        looks += 1
        if looks > control[_PATIENCE]:
            _nap()
            naps += 1
        if naps == _NAPS_BEFORE_SLEEP:
            _set_asleep(control, member, 1)
            if _look(control, _ROUND) == done:
                return done
            _set_asleep(control, member, -1)
            naps = 0
    return done + 1


class Team:
    """``size`` threads, the caller's among them, that do the same compiled task on the same arrays again and again."""

    def __init__(self, size: int, serve: Callable[..., int], work: Any) -> None:
        """Start the other threads.

        ``serve(member, size, control, work, done)`` is compiled code that does a member's part of the task in every
        round that :func:`await_round` gives after ``done``, and returns what it gives at last.
        """
        self.work, self._serve, self.size = work, serve, size
        self._control = new_control(size)
        self._failure: Exception | None = None
        self._alarms = [threading.Event() for _ in range(size)]
        self._threads = [threading.Thread(target=self._work, args=(member,), daemon=True) for member in range(1, size)]
        for thread in self._threads:
            thread.start()

    def run(self) -> None:
        """Do one round, all members together. Raises what a member raised."""
        if self._threads:
            self._control[_PATIENCE] = _watch().looks()
            _announce(self._control)
            for member, alarm in enumerate(self._alarms):
                if self._control[_ASLEEP + member * _LINE]:
                    alarm.set()
        self._serve(0, self.size, self._control, self.work, 0)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the other threads."""
        _stop(self._control)
        for alarm in self._alarms:
            alarm.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self, member: int) -> None:
        done, alarm = 0, self._alarms[member]
        try:
            while (done := self._serve(member, self.size, self._control, self.work, done)) >= 0:
                alarm.wait()
                alarm.clear()
                _set_asleep(self._control, member, -1)
        except Exception as error:
            # The others would wait for this member at the next barrier.
            self._failure = error
            _stop(self._control)
