"""How threads wait for each other on processors that other work shares.

By default PyTorch's wait awake for some milliseconds. Where others want the same processors that
takes them from the very thread that is waited for, and where nobody does it is the fastest way.
"""

import contextlib
import os

import psutil

FEW_SPINS = {"GOMP_SPINCOUNT": "100000"}
"""Waits awake about a third as long as the library does by itself: longer than most waits are, shorter than the
system lets a thread go on before another one's turn."""
_SETTINGS = FEW_SPINS.keys() | {"OMP_WAIT_POLICY", "KMP_BLOCKTIME"}
_LOOK_S = 0.1
SHARED = 0.25
"""Share of the processors from which on other work counts."""


def share_processors() -> None:
    """Let PyTorch's threads wait awake for a shorter time where other work takes a quarter of the processors or more.

    The library reads it when it is loaded: call this before. What the user has set stays.
    """
    # Where the system shows no processes, nothing is known.
    with contextlib.suppress(psutil.Error, OSError):
        if _SETTINGS.isdisjoint(os.environ) and psutil.cpu_percent(_LOOK_S) >= 100 * SHARED:
            os.environ.update(FEW_SPINS)


class Neighbours:
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
