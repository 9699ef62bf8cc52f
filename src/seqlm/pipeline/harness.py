"""What all stage scripts share: one-line errors and exit codes.

A script writes ``@stage()`` above its function instead of ``@click.command()``; the function
gets the :class:`~seqlm.core.layout.Layout` of its folder.
"""

import functools
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from seqlm.core.errors import Interrupted, MachineError, ParamsError, reporting
from seqlm.core.layout import Layout
from seqlm.pipeline.dvc_watchdog import end_with_dvc, is_under_dvc

_EXPERIMENT = "DVC_EXP_BASELINE_REV"
"""`dvc exp run` sets this variable."""
_AFTER_EXPERIMENT = (
    "params.yaml keeps the settings of this experiment; `make restore` goes back to the last commit"
)
_AFTER_COPY = (
    "this experiment ran in a copy of what Git tracks: name other files, such as your own text, by "
    "their absolute path"
)


class _Command(click.Command):
    """A command that refuses wrong options in one line."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except click.UsageError as error:
            _fail(error.format_message(), ParamsError.exit_code)


def stage(
    *, if_out_of_memory: str = "use a shorter text, a smaller model, or a machine with more memory"
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function a click command with this project's errors and exit codes.

    The function's first argument is ``layout``, of the folder that ``--root`` names. A
    SeqlmError becomes one line on the terminal and its exit code; a full disk, missing
    permissions and missing memory become code 5. Help comes from the function's docstring.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def guarded(root: Path, **options: Any) -> None:
            if isinstance(
                sys.stdout, io.TextIOWrapper
            ):  # a terminal's encoding may lack characters
                sys.stdout.reconfigure(errors="backslashreplace")
            if is_under_dvc() and not end_with_dvc(MachineError.exit_code):
                _fail("DVC is gone, and this stage ends with it", MachineError.exit_code)
            if _EXPERIMENT in os.environ:
                # DVC has just changed it, and Git, which compares whole seconds and sizes, may not
                # see that.
                Layout(root).params.touch()
            try:
                with reporting(_fail, if_out_of_memory):
                    function(Layout(root), **options)
            except (Interrupted, KeyboardInterrupt) as interruption:
                click.echo(str(interruption) or "interrupted", err=True)
                sys.exit(Interrupted.exit_code)

        folder = click.Path(path_type=Path, exists=True, file_okay=False, readable=False)
        root = click.option(
            "--root", type=folder, default=".", help="The folder that holds params.yaml."
        )
        settings = {"show_default": True, "max_content_width": 100}
        return click.command(cls=_Command, context_settings=settings)(root(guarded))

    return decorate


def warn(message: str) -> None:
    """Print a warning."""
    click.echo(f"warning: {message}", err=True)


def _fail(message: str, code: int) -> NoReturn:
    one_line = " ".join(message.split())
    click.echo(f"error: {one_line}", err=True)
    if _EXPERIMENT in os.environ:
        is_in_copy = ".dvc" in Path.cwd().parts  # after dvc exp run --temp or --queue
        click.echo(_AFTER_COPY if is_in_copy else _AFTER_EXPERIMENT, err=True)
    sys.exit(code)
