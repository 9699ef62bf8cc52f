"""How threads wait for each other on processors that other work shares.

By default PyTorch's wait awake for some milliseconds. Where others want the same processors that
takes them from the very thread that is waited for, and where nobody does it is the fastest way.
"""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import psutil

FEW_SPINS = {"GOMP_SPINCOUNT": "100000"}
"""Waits awake about a third as long as the library does by itself: best beside one busy process on each processor."""
NO_SPINS = {"GOMP_SPINCOUNT": "0"}
"""Sleeps at once: best where more than one process wants each processor, for the thread that is waited for then
gets none for longer than any wait awake."""
_SETTINGS = FEW_SPINS.keys() | {"OMP_WAIT_POLICY", "KMP_BLOCKTIME"}
_LOOK_S = 0.1
SHARED = 0.25
"""Share of the processors from which on other work counts."""
_CROWD = 2.5
"""Processes that want each processor, on the average of the last minute, from which on no wait awake pays."""
_ENOUGH, _HALF = 0.75, 0.45
"""Shares of what a training's threads want of the processors: they get as much alone; beside one process on each."""


def num_processors() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def share_processors() -> None:
    """Let PyTorch's threads wait awake for a shorter time where other work takes a quarter of the processors or more.

    The library reads it when it is loaded: call this before. What the user has set stays.
    """
    # Where the system shows no processes, nothing is known.
    with contextlib.suppress(psutil.Error, OSError):
        if _SETTINGS.isdisjoint(os.environ) and psutil.cpu_percent(_LOOK_S) >= 100 * SHARED:
            is_crowd = psutil.getloadavg()[0] >= _CROWD * (psutil.cpu_count() or 1)
            os.environ.update(NO_SPINS if is_crowd else FEW_SPINS)


def shorter_wait(got: float) -> dict[str, str] | None:
    """Return how threads that ``got`` this share of what they want should wait; None: as they do.

    They do already where only a shorter wait would be another one, where the user chose
    it, and where the system's threads know of no such setting.
    """
    # Only PyTorch's builds for Linux have the library that reads it.
    if sys.platform != "linux" or got >= _ENOUGH:
        return None
    wanted = NO_SPINS if got < _HALF else FEW_SPINS
    now = {name: os.environ[name] for name in _SETTINGS & os.environ.keys()}
    return wanted if now == {} or (now == FEW_SPINS and wanted == NO_SPINS) else None


def re_exec(wait: Mapping[str, str]) -> NoReturn:
    """Begin this process anew, with the same number and command, and threads that wait for each other like this."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, **wait})


class OtherLoad:
    """Tells how much of the processors other processes take, from one look to the next."""

    def __init__(self) -> None:
        """Look for the first time."""
        self._before = _seconds()

    def share(self) -> float:
        """Return the share of the processors that others took since the last look; 0 where the system says nothing."""
        before, self._before = self._before, _seconds()
        total, busy, own = (now - then for now, then in zip(self._before, before, strict=True))
        return max(busy - own, 0.0) / total if total > 0 else 0.0


def _seconds() -> tuple[float, float, float]:
    """Return the processors' seconds since the system began: all, those worked in, those worked in by this process."""
    with contextlib.suppress(psutil.Error, OSError):
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        # Linux counts the time of guests in that of users too.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return total, total - times.idle - getattr(times, "iowait", 0.0), own.user + own.system
    return 0.0, 0.0, 0.0
