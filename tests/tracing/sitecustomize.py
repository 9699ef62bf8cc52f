"""Notes which files of the project a stage opens and imports.

Python runs this at start when its folder is on PYTHONPATH. The notes go to one file a
stage in the folder that SEQLM_TRACE names.
"""

import atexit
import os
import sys
from pathlib import Path

_root = os.environ.get("DVC_ROOT")
_traces = os.environ.get("SEQLM_TRACE")
_stage = os.environ.get("DVC_STAGE")
_opened: set[str] = set()


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("os.listdir", "os.scandir") and isinstance(arguments[0], str):
        _opened.add(f"{os.path.abspath(arguments[0])}/")  # noqa: PTH100 (a slash at the end: only listed)
    if event != "open" or not isinstance(arguments[0], str):
        return
    path, mode, flags = arguments
    reads = (mode is None and not int(flags) & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and "r" in mode)
    if reads:
        _opened.add(os.path.abspath(path))  # noqa: PTH100 (a link is what a stage opens, not its target)


def _write() -> None:
    modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    inside = {path.removeprefix(f"{_root}/") for path in _opened | modules if path and path.startswith(f"{_root}/")}
    # Stages of one name, such as vocab@char, have a file each.
    Path(_traces, _stage).write_text("\n".join(sorted(inside)))


if _root and _traces and _stage and any("stages/" in argument for argument in sys.orig_argv):
    sys.addaudithook(_note)
    atexit.register(_write)
