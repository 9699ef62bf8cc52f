"""What every stage script shares: one-line errors, exit codes, and the end of orphans.

A script writes ``@stage()`` above its function in place of ``@click.command()``; the
function gets the :class:`~seqlm.core.layout.Layout` of the folder that it works in.
"""

import errno
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import click

    from seqlm.core.errors import MachineError, SeqlmError
    from seqlm.core.layout import Layout
except ModuleNotFoundError as missing:
    sys.exit(
        f"error: this Python ({sys.executable}) has no package {missing.name!r}: run `make repro`, "
        "or put the environment first on PATH as the README says"
    )

_PARENT_POLL_S = 0.5
_WATCHED_PARENTS = 3
"""Processes above one of several that torchrun started, up to DVC's own."""
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "busybox"}
_RUN_DVC = ("python", "pypy", "dvc")


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
            _end_with_parent()
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

    Call it when all that the stage reads of the runs' settings is known to be whole.
    """
    from seqlm.train.runs import remove_ghosts

    if not _under_dvc():
        return
    for ghost in remove_ghosts(runs, layout.runs, layout.run_scores, layout.reports("train"), layout.reports("score")):
        click.echo(f"removed {ghost}: no such run is left")


def _under_dvc() -> bool:
    return "DVC_STAGE" in os.environ


def _folder() -> click.Path:
    return click.Path(path_type=Path, exists=True, file_okay=False, readable=False)


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"error: {one_line}", err=True)
    if _under_dvc():
        click.echo(
            "after a failed `dvc exp run -S`, "
            "`git checkout params.yaml dvc.lock reports && dvc checkout` restores the workspace",
            err=True,
        )
    sys.exit(code)


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    advice = {errno.ENOSPC: ": free some space, then run again", errno.EACCES: ": check its permissions"}
    return f"{where}{error.strerror or error}{advice.get(error.errno or 0, '')}"


def _end_with_parent() -> None:
    """Under DVC, end this process when ``dvc repro`` is gone.

    A killed ``dvc repro`` leaves its child running, which would then write beside the
    next one's. DVC starts a stage through a shell, and torchrun stands between the two:
    the parents up to the third are watched. Started by hand, a stage may outlive its
    terminal.
    """
    if not _under_dvc():
        return
    parents = _ancestors()
    if _is_orphan():
        _fail("DVC is gone, and this stage ends with it", MachineError.exit_code)

    def watch() -> None:
        while _ancestors() == parents:
            time.sleep(_PARENT_POLL_S)
        os._exit(MachineError.exit_code)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _is_orphan() -> bool:
    """Whether DVC went before this process could look: then its nearest ancestor that is no shell is another program.

    DVC runs in a Python, or in a program of its own name. False where the system does not show it.
    """
    process = os.getppid()
    try:
        while (program := _program(process)) in _SHELLS:
            process = _parent_of(process)
    except OSError:
        return process == 0  # above the first process there is none
    return not any(name in program for name in _RUN_DVC)


def _program(process: int) -> str:
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except PermissionError:  # of another user, or the system's first process
        return Path(f"/proc/{process}/comm").read_text().strip()


def _parent_of(process: int) -> int:
    # Field 4 of /proc/PID/stat, counted after the command name, which may hold spaces.
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _ancestors() -> list[int]:
    """Return the ids of the parent and, where the system shows them, of the ones above it."""
    found = [os.getppid()]
    while len(found) < (_WATCHED_PARENTS if "TORCHELASTIC_RUN_ID" in os.environ else 2):
        try:
            found.append(_parent_of(found[-1]))
        except OSError:
            break
    return found
