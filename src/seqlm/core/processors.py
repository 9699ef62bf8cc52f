"""How PyTorch's threads wait for each other on processors that other work shares.

By default they wait awake for some milliseconds. Where others want the same processors that
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
_SHARED_PERCENT = 25.0


def share_processors() -> None:
    """Let PyTorch's threads wait awake for a shorter time where other work takes a quarter of the processors or more.

    The library reads it when it is loaded: call this before. What the user has set stays.
    """
    # Where the system shows no processes, nothing is known.
    with contextlib.suppress(psutil.Error, OSError):
        if _SETTINGS.isdisjoint(os.environ) and psutil.cpu_percent(_LOOK_S) >= _SHARED_PERCENT:
            os.environ.update(FEW_SPINS)
