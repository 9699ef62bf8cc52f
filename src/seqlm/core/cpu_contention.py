"""How PyTorch's threads wait for each other while other work uses the same processors.

By default they spin for some milliseconds. That is fastest on an idle machine. On a busy
one, spinning takes the processor from the very thread that is waited for.
"""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import psutil

FEW_SPINS = {"GOMP_SPINCOUNT": "100000"}
"""Spin about a third as long as the default: best beside one busy process on each processor."""
NO_SPINS = {"GOMP_SPINCOUNT": "0"}
"""Sleep at once: best if several processes want each processor, because the thread that is waited for then
gets none for longer than any spinning lasts."""
_SETTINGS = FEW_SPINS.keys() | {"OMP_WAIT_POLICY", "KMP_BLOCKTIME"}
_SAMPLE_S = 0.1
_HIGH_LOAD = 0.25
"""Fraction of the processors from which other processes' load is high."""
_CROWD = 2.5
"""Average number of processes that want each processor, over the last minute, from which no spinning pays."""
_ENOUGH, _HALF = 0.75, 0.45
"""Fractions of the processor time its threads ask for that a training gets alone, and beside one process on each."""


def num_processors() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shorten_spinning() -> None:
    """Let PyTorch's threads spin for a shorter time if other processes' load is high.

    Call this before PyTorch is imported, which reads the setting once. A user's own setting stays.
    """
    # Some systems do not show other processes.
    with contextlib.suppress(psutil.Error, OSError):
        if _SETTINGS.isdisjoint(os.environ) and psutil.cpu_percent(_SAMPLE_S) >= 100 * _HIGH_LOAD:
            is_crowd = psutil.getloadavg()[0] >= _CROWD * (psutil.cpu_count() or 1)
            os.environ.update(NO_SPINS if is_crowd else FEW_SPINS)


def shorter_wait(received: float) -> dict[str, str] | None:
    """Return how threads that ``received`` this fraction of the processor time they want should wait.

    None means no change: the user chose how they wait, they wait shortly enough already, or this
    system has no such setting.
    """
    # Only PyTorch's builds for Linux use the library that reads it.
    if sys.platform != "linux" or received >= _ENOUGH:
        return None
    wanted = NO_SPINS if received < _HALF else FEW_SPINS
    now = {name: os.environ[name] for name in _SETTINGS & os.environ.keys()}
    return wanted if now == {} or (now == FEW_SPINS and wanted == NO_SPINS) else None


def re_exec(wait: Mapping[str, str]) -> NoReturn:
    """Start this process again, with the same process id and command, and the given way to wait."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, **wait})


class OtherLoad:
    """Measures how much of the processors other processes use, since the last measurement."""

    def __init__(self) -> None:
        """Start the first measurement."""
        self._before = _processor_seconds()

    def fraction(self) -> float:
        """Return the fraction of the processors that others used; 0 if the system does not tell."""
        before, self._before = self._before, _processor_seconds()
        total, busy, own = (now - then for now, then in zip(self._before, before, strict=True))
        return max(busy - own, 0.0) / total if total > 0 else 0.0

    def is_high(self) -> bool:
        """Whether others used a quarter of the processors or more."""
        return self.fraction() >= _HIGH_LOAD


def _processor_seconds() -> tuple[float, float, float]:
    """Return the processors' seconds since the system started: all, busy, and used by this process."""
    with contextlib.suppress(psutil.Error, OSError):
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        # Linux counts the time of guests as that of users too.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return total, total - times.idle - getattr(times, "iowait", 0.0), own.user + own.system
    return 0.0, 0.0, 0.0
