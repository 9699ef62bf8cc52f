"""Other work on the processors."""

from contextlib import suppress

import psutil

_HIGH_LOAD = 0.25
"""Fraction of the processors from which other processes' load is high."""


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
    with suppress(psutil.Error, OSError):
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        # Linux counts the time of guests as that of users too.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return total, total - times.idle - getattr(times, "iowait", 0.0), own.user + own.system
    return 0.0, 0.0, 0.0
