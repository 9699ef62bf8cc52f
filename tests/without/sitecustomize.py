"""Takes away what other systems lack: the system's file locks, a working ``sched_yield``, and /proc.

Python runs this at start if its folder is on PYTHONPATH. It affects only stages, not DVC.
"""

import os
import sys
from typing import Any

_PROC = "/proc"


def _is_proc(path: Any) -> bool:
    return isinstance(path, str | os.PathLike) and f"{os.fspath(path)}/".startswith(f"{_PROC}/")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and _is_proc(arguments[0]):
        raise FileNotFoundError(2, "taken away", str(arguments[0]))


def _without_proc() -> None:
    read = os.readlink

    def readlink(path: Any, **options: Any) -> Any:
        if _is_proc(path):
            raise FileNotFoundError(2, "taken away", str(path))
        return read(path, **options)

    os.readlink = readlink
    sys.addaudithook(_refuse)


def _without_yield() -> None:
    import ctypes

    from llvmlite import binding

    # Compiled loops that call this name now call a function that only returns a number.
    libc = ctypes.CDLL(None)
    binding.add_symbol("sched_yield", ctypes.cast(libc.getpagesize, ctypes.c_void_p).value)
    del os.sched_yield


if os.environ.get("SEQLM_WITHOUT") and any("stages/" in argument for argument in sys.orig_argv):
    sys.modules["fcntl"] = None  # type: ignore[assignment]  # so that importing it fails
    _without_yield()
    _without_proc()
