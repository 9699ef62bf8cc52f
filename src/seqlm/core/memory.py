"""How much memory this machine has, and refusing what needs more."""

from contextlib import suppress
from pathlib import Path

from seqlm.core.errors import MachineError

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The limit of a container; the word "max" if it has none."""


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or of this container if it has a limit."""
    import psutil

    total: int = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        return min(total, int(_CGROUP_LIMIT.read_text()))
    return total


def require_memory(needed: int, what: str) -> None:
    """Raise MachineError, with one line, unless this machine has the bytes of memory that ``what``
    needs."""
    if needed > machine_memory():
        raise MachineError(
            f"{what} needs about {needed / 1e9:.0f} GB of memory, and this machine has "
            f"{machine_memory() / 1e9:.0f}: "
            "use a shorter text, or a machine with more"
        )
