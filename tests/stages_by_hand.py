"""Stages run by hand, without DVC, in a folder of their own."""

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
from unittest import mock

from smoke import ROOT

Finished = subprocess.CompletedProcess[str]
RunStage = Callable[..., Finished]
"""Runs a stage with its arguments and, by name, variables of its environment."""

_STAGES = ROOT / "stages"
# What Python ignores where nobody asks for more.
_IGNORED = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def prepare(folder: Path) -> Path:
    """Give a folder what every stage may ask for: settings, the registry and the sample; return the folder.

    The settings are the project's but for the number of threads: tests share the cores.
    """
    (folder / "data").mkdir(exist_ok=True)
    for name in ("data/corpora.yaml", "data/sample.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    settings = (ROOT / "params.yaml").read_text(encoding="utf-8")
    assert "\nnum_threads: 2 " in settings
    (folder / "params.yaml").write_text(settings.replace("\nnum_threads: 2 ", "\nnum_threads: 1 "), encoding="utf-8")
    return folder


def in_a_process(folder: Path) -> RunStage:
    """Return a function that runs a stage's script in ``folder``, in a process of its own."""

    def run(stage: str, *arguments: str, **environment: str) -> Finished:
        return subprocess.run(
            [sys.executable, str(_STAGES / f"{stage}.py"), *arguments],
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def in_this_process(folder: Path) -> RunStage:
    """Return a function that runs a stage's script in ``folder``, in this process.

    The script, its exit code and what it says are those of a process of its own, but for
    the seconds in which that would import PyTorch. One at a time: a process has one folder and one environment.
    """

    def run(stage: str, *arguments: str, **environment: str) -> Finished:
        script = str(_STAGES / f"{stage}.py")
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, environment),
            mock.patch.object(sys, "argv", [script, *arguments]),
            mock.patch.object(sys, "path", [str(_STAGES), *sys.path]),
            _threads_kept(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _warnings_as_at_a_terminal(),
        ):
            code = _run_to_exit(script)
        return Finished([script, *arguments], code, out.getvalue(), err.getvalue())

    return run


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
def _threads_kept() -> Iterator[None]:
    """Undo what a stage sets for its whole process."""
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _warnings_as_at_a_terminal() -> Iterator[None]:
    """Write warnings to the standard error, as Python does where pytest does not collect them."""

    def show(message: Warning | str, kind: type[Warning], *where: object) -> None:
        sys.stderr.write(warnings.formatwarning(message, kind, *where[:2]))  # type: ignore[arg-type]

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for kind in _IGNORED:
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = show
        yield
