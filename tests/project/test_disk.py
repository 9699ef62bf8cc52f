"""Every stage refuses a full disk, a read-only folder and an unreadable file with one line.

The tests fill a small file system of their own. If mounting is not allowed they are skipped, and a limit on the size
of files shows the same refusals.
"""

import hashlib
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from disks import as_owner, fill, mount, mounted
from workspace import Workspace

pytestmark = pytest.mark.slow

STAGES = [
    "download", "preprocess", "vocab@char", "ngrams@char", "sine", "configure", "train@plain", "score@plain",
    "score-ngrams@char", "evaluate", "generate", "gradients", "report",
]  # fmt: skip


def contents(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, without links."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def root_for(workspace: Workspace, stage: str, folder: Path) -> Path:
    """Prepare ``folder`` for a stage: links to everything that it reads."""
    params = folder / "params.yaml"
    if not params.exists():
        params.symlink_to(workspace.folder / "params.yaml")
    for dep in workspace.lock()[stage].get("deps", []):
        if dep["path"].startswith(("data/", "reports/")):
            link = folder / dep["path"]
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(workspace.folder / dep["path"])
    return folder


def by_hand(
    workspace: Workspace, stage: str, root: Path, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a stage's command from ``dvc.lock`` in the folder ``root``."""
    words = shlex.split(workspace.lock()[stage]["cmd"])
    return subprocess.run(
        [sys.executable, *words[1:], "--root", str(root)],
        cwd=workspace.folder,
        env=workspace.environment,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=before,
    )


def assert_refused(result: subprocess.CompletedProcess[str], complaint: str) -> None:
    assert result.returncode == 5, result.stderr
    assert result.stderr.startswith("error: "), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert complaint in result.stderr


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_keeps_the_old_files(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=12m", "tmpfs") as disk:
        root_for(workspace, stage, disk)
        done = by_hand(workspace, stage, disk)
        assert done.returncode == 0, done.stderr
        fill(disk)
        before = contents(disk)
        assert len(before) > 1
        assert_refused(by_hand(workspace, stage, disk), "No space left on device")
        assert contents(disk) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_disk_that_fills_up_leaves_no_partial_file(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    # No file may grow beyond 20 bytes: the first larger write fails halfway.
    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    root_for(workspace, stage, tmp_path)
    assert_refused(by_hand(workspace, stage, tmp_path, limit), "File too large")
    assert [path for path in contents(tmp_path) if not path.endswith(".lock")] == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_read_only_folder_keeps_the_old_files(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    root_for(workspace, stage, tmp_path)
    assert by_hand(workspace, stage, tmp_path).returncode == 0
    before = contents(tmp_path)
    with mounted(tmp_path, "--bind", str(tmp_path)):
        mount("-o", "remount,bind,ro", str(tmp_path))
        assert_refused(by_hand(workspace, stage, tmp_path), "Read-only file system")
    assert contents(tmp_path) == before


def test_an_unreadable_text_is_named(workspace: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the sea\n" * 500)
    secret.chmod(0)
    params = (workspace.folder / "params.yaml").read_text().replace("corpus: sample", f"corpus: {secret}")
    download = root_for(workspace, "download", made(tmp_path / "download"))
    (download / "params.yaml").unlink()
    (download / "params.yaml").write_text(params)
    preprocess = made(tmp_path / "preprocess")
    (preprocess / "params.yaml").write_text(params)
    corpus = made(preprocess / "data/raw") / "corpus.txt"
    corpus.write_bytes(b"the sea\n" * 500)
    corpus.chmod(0)
    for name, root, unreadable in (("download", download, secret), ("preprocess", preprocess, corpus)):
        before = names(root)
        result = subprocess.run(
            [*as_owner(), sys.executable, f"stages/{name}.py", "--root", root],
            cwd=workspace.folder,
            env=workspace.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert_refused(result, str(unreadable))
        assert names(root) == before


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def names(folder: Path) -> list[str]:
    """Return the files below a folder, including unreadable ones."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())
