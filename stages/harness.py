"""What every stage script shares: one-line errors, exit codes, and the end of orphans.

A script writes ``@stage()`` above its function in place of ``@click.command()``; the
function gets the :class:`~seqlm.core.layout.Layout` of the folder that it works in.
"""

import contextlib
import errno
import functools
import io
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import click
    import psutil

    from seqlm.core.errors import MachineError, SeqlmError
    from seqlm.core.layout import Layout
    from seqlm.core.processors import share_processors
except ModuleNotFoundError as missing:
    sys.exit(
        f"error: this Python ({sys.executable}) has no package {missing.name!r}: run `make repro`, "
        "or put the environment first on PATH as the README says"
    )

_PARENT_POLL_S = 0.5
_MARK = "DVC_STAGE"
"""What DVC puts into the environment of a stage's command."""
_RUN_DVC = ("python", "pypy", "dvc")
_TAKE_IN_ORPHANS = {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init"}
"""Beside the system's first process: of a user's session, of a container."""


# ``readable=False``: a file that may not be read is refused by who opens it, with code 5, not as a wrong option.


def existing_file() -> click.Path:
    """Return the option type of a file that must be there."""
    return click.Path(path_type=Path, exists=True, dir_okay=False, readable=False)


def file() -> click.Path:
    """Return the option type of a file, there or not."""
    return click.Path(path_type=Path, dir_okay=False, readable=False)


def stage() -> Callable[[Callable[..., None]], click.Command]:
    """Make a click command of a function, with this project's errors and exit codes.

    The function's first argument is ``layout``, of the folder that ``--root`` names. A
    SeqlmError becomes one line on the terminal and its exit code; a full disk, missing
    permissions and missing memory become code 5. Help comes from the function's docstring.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def guarded(root: Path, **options: Any) -> None:
            _show_any_letter()
            share_processors()
            _end_with_dvc()
            try:
                function(Layout(root), **options)
            except SeqlmError as error:
                _fail(str(error), error.exit_code)
            except MemoryError:
                _fail("out of memory: lower the batch size or the model's size", MachineError.exit_code)
            except OSError as error:
                _fail(_describe(error), MachineError.exit_code)

        root = click.option("--root", type=_folder(), default=".", help="The folder that holds params.yaml.")
        return click.command(context_settings={"show_default": True, "max_content_width": 100})(root(guarded))

    return decorate


def clear_ghosts(layout: Layout, runs: list[str]) -> None:
    """Under DVC, remove what runs left behind that are not among ``runs`` any more, and say so.

    Call it when the stage has read and written everything else: what it reads was whole then.
    """
    from seqlm.train.runs import remove_ghosts

    if not _under_dvc():
        return
    for ghost in remove_ghosts(runs, layout.runs, layout.run_scores, layout.reports("train"), layout.reports("score")):
        click.echo(f"removed {ghost}: no such run is left")


def _show_any_letter() -> None:
    """Show letters that the terminal's encoding lacks as escapes: on Windows it often lacks some."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _under_dvc() -> bool:
    return _MARK in os.environ


def _folder() -> click.Path:
    return click.Path(path_type=Path, exists=True, file_okay=False, readable=False)


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"error: {one_line}", err=True)
    if _under_dvc():
        click.echo("after a failed `dvc exp run`, `make restore` goes back to the last commit", err=True)
    sys.exit(code)


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    advice = {errno.ENOSPC: ": free some space, then run again", errno.EACCES: ": check its permissions"}
    return f"{where}{error.strerror or error}{advice.get(error.errno or 0, '')}"


def _end_with_dvc() -> None:
    """Under DVC, end this process when ``dvc repro`` is gone.

    A killed ``dvc repro`` leaves its child running, which would then write beside the
    next one's. Started by hand, a stage may outlive its terminal.
    """
    if not _under_dvc():
        return
    line = _line_to_dvc()
    if line is None:
        _fail("DVC is gone, and this stage ends with it", MachineError.exit_code)

    def watch() -> None:
        while _above()[: len(line)] == line:
            time.sleep(_PARENT_POLL_S)
        os._exit(MachineError.exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _line_to_dvc() -> list[psutil.Process] | None:
    """Return the processes above this one up to DVC's; None where DVC went before this process could look.

    What DVC starts, and what that starts (a shell, torchrun, timeout), has DVC_STAGE in its
    environment. The next one up is DVC, a Python or a program of its own name; or who takes in
    orphans, and then DVC is gone; or another program, behind which DVC cannot be seen from
    here (srun's, on another machine), and then what can be seen is all that can be watched.
    """
    above = _above()
    for number, process in enumerate(above):
        names, environment = _look_at(process)
        if environment.get(_MARK) == os.environ[_MARK]:
            continue
        if any(word in name for name in names for word in _RUN_DVC):
            return above[: number + 1]
        if process.pid == 1 or _TAKE_IN_ORPHANS & set(names):
            return None
        if environment:  # else the system hides it, and DVC may be further up
            return above[: number + 1]
    return None if os.name == "nt" and above else above  # Windows gives orphans no other parent


def _above() -> list[psutil.Process]:
    """Return the processes above this one; none where the system does not show them, as Linux without /proc."""
    try:
        return psutil.Process().parents()
    except (psutil.Error, OSError):
        return []


def _look_at(process: psutil.Process) -> tuple[list[str], dict[str, str]]:
    """Return the names of a process and its environment, as far as the system shows them."""
    names: list[str] = []
    environment: dict[str, str] = {}
    with contextlib.suppress(psutil.Error, OSError):
        names.append(process.name().lower())
        names.append(Path(process.exe()).name.lower())
    with contextlib.suppress(psutil.Error, OSError):
        environment = process.environ()
    return names, environment
