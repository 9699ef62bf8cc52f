"""What breaks in a stage, and what must hold: the stage ends with one line and a code, and changes no file."""

import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from full_disks import as_owner
from smoke import change_params
from stages_by_hand import refused
from workspace import Finished, Workspace

pytestmark = pytest.mark.slow

STAGES = [
    "download", "preprocess", "vocab@char", "ngrams@char", "sine", "configure", "train@plain", "score@plain",
    "score-ngrams@char", "evaluate", "generate", "gradients", "report",
]  # fmt: skip


def copy_inputs(workspace: Workspace, stage: str, folder: Path) -> None:
    """Copy what a stage reads to a folder of its own."""
    names = [dep["path"] for dep in workspace.lock()[stage].get("deps", [])]
    for name in {"params.yaml", "dvc.yaml", *(name for name in names if not name.startswith(("src/", "stages/")))}:
        source, copy = workspace.folder / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, copy)


def run(
    workspace: Workspace, stage: str, folder: Path, before: Callable[[], None] | None = None, prefix: Sequence[str] = ()
) -> Finished:
    """Run a stage by its command in ``dvc.lock``, in another folder."""
    command = [*prefix, sys.executable, *shlex.split(workspace.lock()[stage]["cmd"])[1:], "--root", str(folder)]
    return subprocess.run(
        command, cwd=workspace.folder, env=workspace.environment, capture_output=True, text=True, timeout=300,
        preexec_fn=before,
    )  # fmt: skip


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of each file but locks, which may be one that cannot be read."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock")]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("stage", STAGES)
def test_a_disk_that_fills_up_changes_no_file(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    # No file may grow beyond 20 bytes: the first larger write fails halfway.
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    copy_inputs(workspace, stage, tmp_path)
    before = states(tmp_path)
    refused(run(workspace, stage, tmp_path, limit), 5, "File too large")
    assert states(tmp_path) == before


def test_a_corpus_that_nobody_may_read_is_named(workspace: Workspace, tmp_path: Path) -> None:
    copy_inputs(workspace, "download", tmp_path)
    change_params(tmp_path / "params.yaml", {"download.corpus": str(tmp_path / "mine.txt")})
    (tmp_path / "mine.txt").write_text("the sea\n" * 500)
    (tmp_path / "mine.txt").chmod(0)
    refused(run(workspace, "download", tmp_path, prefix=as_owner()), 5, "mine.txt")
