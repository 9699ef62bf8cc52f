"""Every stage refuses a full disk and an unreadable file with one line.

The tests fill a small file system of their own. If mounting is not allowed they are skipped, and a limit on the size
of files shows the same refusals.
"""

import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from disks import as_owner, fill, mounted
from smoke import change_params
from stages_by_hand import refused
from workspace import Finished, Workspace, contents

pytestmark = pytest.mark.slow

STAGES = [
    "download", "preprocess", "vocab@char", "ngrams@char", "sine", "configure", "train@plain", "score@plain",
    "score-ngrams@char", "evaluate", "generate", "gradients", "report",
]  # fmt: skip


def root_for(workspace: Workspace, stage: str, folder: Path) -> Path:
    """Prepare ``folder`` for a stage: links to everything that it reads."""
    params = folder / "params.yaml"
    if not params.exists():
        params.symlink_to(workspace.folder / "params.yaml")
    for dep in workspace.lock()[stage].get("deps", []):
        if dep["path"].startswith(("benchmarks/", "data/", "reports/")):
            link = folder / dep["path"]
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(workspace.folder / dep["path"])
    return folder


def by_hand(
    workspace: Workspace, stage: str, root: Path, before: Callable[[], None] | None = None, prefix: Sequence[str] = ()
) -> Finished:
    """Run a stage's command from ``dvc.lock`` in the folder ``root``."""
    words = shlex.split(workspace.lock()[stage]["cmd"])
    return subprocess.run(
        [*prefix, sys.executable, *words[1:], "--root", str(root)], cwd=workspace.folder, env=workspace.environment,
        capture_output=True, text=True, timeout=300, preexec_fn=before,
    )  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_keeps_the_old_files(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=12m", "tmpfs") as disk:
        root_for(workspace, stage, disk)
        done = by_hand(workspace, stage, disk)
        assert done.returncode == 0, done.stderr
        fill(disk)
        before = contents(disk)
        assert len(before) > 1
        refused(by_hand(workspace, stage, disk), 5, "No space left on device")
        assert contents(disk) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_disk_that_fills_up_leaves_no_partial_file(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    # No file may grow beyond 20 bytes: the first larger write fails halfway.
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    root_for(workspace, stage, tmp_path)
    refused(by_hand(workspace, stage, tmp_path, limit), 5, "File too large")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("stage", ["download", "preprocess"])
def test_an_unreadable_text_is_named(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    text = tmp_path / ("secret.txt" if stage == "download" else "data/raw/corpus.txt")
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("the sea\n" * 500)
    text.chmod(0)
    shutil.copyfile(workspace.folder / "params.yaml", tmp_path / "params.yaml")
    change_params(tmp_path / "params.yaml", {"download.corpus": str(text)})
    if stage == "download":
        root_for(workspace, stage, tmp_path)

    def files() -> list[Path]:
        return sorted(path for path in tmp_path.rglob("*") if path.is_file())

    before = files()
    refused(by_hand(workspace, stage, tmp_path, prefix=as_owner()), 5, str(text))
    assert files() == before
