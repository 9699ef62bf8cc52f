"""Records which files of the project a stage opens or imports, and which settings it reads.

Python runs this at start if its folder is on PYTHONPATH. Each stage writes one JSON file to the folder SEQLM_TRACE.
"""

import atexit
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

_root = os.environ.get("DVC_ROOT")
_traces = os.environ.get("SEQLM_TRACE")
_stage = os.environ.get("DVC_STAGE")
_opened: set[str] = set()
_settings: set[str] = set()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("os.listdir", "os.scandir") and isinstance(arguments[0], str):
        _opened.add(f"{os.path.abspath(arguments[0])}/")  # noqa: PTH100 (a slash at the end: only listed)
    if event != "open" or not isinstance(arguments[0], str):
        return
    path, mode, flags = arguments
    reads = (mode is None and not int(flags) & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and "r" in mode)
    if reads:
        _opened.add(os.path.abspath(path))  # noqa: PTH100 (a link is what a stage opens, not its target)
    if reads and os.path.basename(path) == "params.yaml":  # noqa: PTH119 (as quick as can be)
        _settings.add(_setting_asked_for())


def _setting_asked_for() -> str:
    """Return the key with which ``seqlm.core.settings.load`` was called, further up the stack; "*" for all settings."""
    frame: FrameType | None = sys._getframe()
    while frame and (frame := frame.f_back):
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == ("seqlm.core.settings", "load"):
            return str(frame.f_locals["key"])
    return "*"


def _inside(paths: Iterable[str | None]) -> list[str]:
    inside = {path.removeprefix(f"{_root}/") for path in paths if path and path.startswith(f"{_root}/")}
    return [path for path in sorted(inside) if "__pycache__" not in path]


def _write(traces: str, stage: str) -> None:
    modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found = {"opened": _inside(_opened), "imported": _inside(modules), "settings": sorted(_settings)}
    # Stages of one name, such as vocab@char, write one file each.
    Path(traces, stage).write_text(json.dumps(found))


if _root and _traces and _stage and any("stages/" in argument for argument in sys.orig_argv):
    sys.addaudithook(_note)
    atexit.register(_write, _traces, _stage)
