"""What all stage scripts share: one-line errors, exit codes, and a watchdog for DVC.

A script writes ``@stage()`` above its function instead of ``@click.command()``; the function
gets the :class:`~seqlm.core.layout.Layout` of its folder.
"""

import errno
import functools
import gc
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Imports and large vocabularies make many objects and no garbage: look for it less often than every 700 of them.
gc.set_threshold(50_000, 20, 20)

try:
    import click

    from seqlm.core.errors import Interrupted, MachineError, SeqlmError
    from seqlm.core.layout import Layout
    from seqlm.core.processes import end_with_dvc, is_under_dvc, keep_freed_memory, shorten_spinning
except ModuleNotFoundError as missing:
    sys.exit(
        f"error: this Python ({sys.executable}) has no package {missing.name!r}: run `make repro`, "
        "or put the environment first on PATH as the README says"
    )


_NO_MEMORY = re.compile("can't allocate memory|out of memory")
"""In PyTorch's errors, on CPUs and on GPUs."""

# ``readable=False``: whoever opens an unreadable file refuses it with code 5; for click it would be a wrong option.


def existing_file(*, allow_dash: bool = False) -> click.Path:
    """Return the option type of a file that must exist, or, if allowed, of ``-`` for standard input."""
    return click.Path(path_type=Path, exists=True, dir_okay=False, readable=False, allow_dash=allow_dash)


def file() -> click.Path:
    """Return the option type of a file that need not exist."""
    return click.Path(path_type=Path, dir_okay=False, readable=False)


def stage(*, uses_torch: bool = False) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function a click command with this project's errors and exit codes.

    The function's first argument is ``layout``, of the folder that ``--root`` names. A
    SeqlmError becomes one line on the terminal and its exit code; a full disk, missing
    permissions and missing memory become code 5. Help comes from the function's docstring.
    ``uses_torch``: look whether the processors are busy before PyTorch is imported.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def guarded(root: Path, **options: Any) -> None:
            _escape_unencodable()
            keep_freed_memory()
            if uses_torch:
                shorten_spinning()
            if is_under_dvc() and not end_with_dvc(MachineError.exit_code):
                _fail("DVC is gone, and this stage ends with it", MachineError.exit_code)
            try:
                function(Layout(root), **options)
            except (Interrupted, KeyboardInterrupt) as interruption:
                click.echo(str(interruption) or "interrupted", err=True)
                sys.exit(Interrupted.exit_code)
            except SeqlmError as error:
                _fail(str(error), error.exit_code)
            except (MemoryError, RuntimeError) as error:
                if not isinstance(error, MemoryError) and not _NO_MEMORY.search(str(error)):
                    raise
                _fail("out of memory: lower the batch size or the model's size", MachineError.exit_code)
            except OSError as error:
                _fail(_describe(error), MachineError.exit_code)

        root = click.option("--root", type=_folder(), default=".", help="The folder that holds params.yaml.")
        return click.command(context_settings={"show_default": True, "max_content_width": 100})(root(guarded))

    return decorate


def _escape_unencodable() -> None:
    """Print characters that the terminal's encoding lacks as escapes: on Windows it often lacks some."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def warn(message: str) -> None:
    """Print a warning."""
    click.echo(f"warning: {message}", err=True)


def _folder() -> click.Path:
    return click.Path(path_type=Path, exists=True, file_okay=False, readable=False)


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"error: {one_line}", err=True)
    if is_under_dvc():
        click.echo("after a failed `dvc exp run`, `make restore` goes back to the last commit", err=True)
    sys.exit(code)


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    advice = {errno.ENOSPC: ": free some space, then run again", errno.EACCES: ": check its permissions"}
    return f"{where}{error.strerror or error}{advice.get(error.errno or 0, '')}"
