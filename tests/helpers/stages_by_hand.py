"""Run stages without DVC, in a folder of their own."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from default_params import PARAMS_FILE
from smoke import ROOT

Finished = subprocess.CompletedProcess[str]
RunStage = Callable[..., Finished]
"""Runs a stage with its arguments; keywords are environment variables."""

_STAGES = ROOT / "stages"


def prepare(folder: Path) -> Path:
    """Put the default settings, the registry and the sample into a folder; return the folder."""
    (folder / "data").mkdir(exist_ok=True)
    for name in ("data/corpora.yaml", "data/sample.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "params.yaml").write_bytes(PARAMS_FILE.read_bytes())
    return folder


def in_this_process(folder: Path) -> RunStage:
    """Return a function that runs a stage's script in ``folder`` and in this process.

    The exit code and the output are the same as in a process of its own, without the seconds it takes to import
    PyTorch. With ``DVC_STAGE`` in the environment the stage behaves as it does under DVC, except that it does not
    watch for the end of DVC. Not thread-safe: a process has one working folder and one environment.
    """

    def run(stage: str, *arguments: str, **environment: str) -> Finished:
        script = str(_STAGES / f"{stage}.py")
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, environment),
            mock.patch.object(sys, "argv", [script, *arguments]),
            mock.patch.object(sys, "path", [str(_STAGES), *sys.path]),
            _as_in_a_process(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = _run_to_exit(script)
        return Finished([script, *arguments], code, out.getvalue(), err.getvalue())

    return run


def run_command(folder: Path, *arguments: object) -> Finished:
    """Run the command ``seqlm`` in ``folder`` and in this process."""
    from seqlm.command import main

    words, out, err, code = [str(argument) for argument in arguments], io.StringIO(), io.StringIO(), 0
    redirected = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with contextlib.chdir(folder), redirected[0], redirected[1]:
        try:
            main(words, prog_name="seqlm")
        except SystemExit as end:
            code = int(end.code or 0)
    return Finished(words, code, out.getvalue(), err.getvalue())


def run_python(script: str, *arguments: object, **environment: str) -> Finished:
    """Run a script in a process that finds the modules that this one finds."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    return subprocess.run(command, env=variables, capture_output=True, text=True)


def succeeded(finished: Finished) -> str:
    """Return what a stage printed; raise AssertionError if it failed."""
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def refused(finished: Finished, code: int, complaint: str) -> None:
    """Raise AssertionError unless a stage ended with this code and with one line that contains the complaint."""
    assert (finished.returncode, finished.stderr.count("\n")) == (code, 1), finished.stderr
    assert complaint in finished.stderr, finished.stderr


def _run_to_exit(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def _as_in_a_process() -> Iterator[None]:
    """Let a stage leave no thread and no setting of PyTorch, and write warnings to standard error as Python does."""
    import torch

    from seqlm.pipeline import harness

    def show(message: Any, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))

    num_threads = torch.get_num_threads()
    # A watchdog would end this process.
    with mock.patch.object(harness, "end_with_dvc", return_value=True), warnings.catch_warnings():
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)  # as Python does by default
        warnings.showwarning = show
        try:
            yield
        finally:
            torch.set_num_threads(num_threads)
