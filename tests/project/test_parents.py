"""A stage finds DVC above it, behind any program, and ends when DVC is gone: with the real DVC."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from smoke import ROOT
from workspace import Repository, wait_until

SCRIPT = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {stages!r})
from harness import stage

@stage()
def main(layout):
    Path("began").write_text(str(os.getpid()))
    time.sleep(float(os.environ.get("STAGE_TAKES", "0")))
    Path("done").touch()

main()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one stage, whose script does almost nothing."""
    found = Repository(tmp_path / "repository")
    found.folder.mkdir()
    (found.folder / "script.py").write_text(SCRIPT.format(stages=str(ROOT / "stages")))
    found.run("git", "init", "--quiet")
    found.run("dvc", "init", "--quiet")
    return found


def repro(repository: Repository, command: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start ``dvc repro`` with this command as its only stage."""
    with (repository.folder / "dvc.yaml").open("w") as file:
        YAML().dump({"stages": {"one": {"cmd": command, "always_changed": True}}}, file)
    repository.environment |= environment
    return repository.start("dvc", "repro")


def content(path: Path) -> str:
    """Return what a file holds, as soon as it holds something."""
    wait_until(lambda: path.exists() and path.read_text() != "")
    return path.read_text()


def is_running(process: int) -> bool:
    return psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE


@pytest.mark.skipif(not Path("/proc").is_dir() or not shutil.which("timeout"), reason="needs the tools of Linux")
def test_a_stage_finds_dvc_above_any_program(repository: Repository) -> None:
    shell = repository.folder / "unheard-of"  # DVC uses the user's own shell: tcsh, fish, ...
    shutil.copy(shutil.which("sh") or "", shell)
    command = f"env A=b nice timeout 60 sh -c '{sys.executable} script.py & wait $!'"
    assert repro(repository, command, SHELL=str(shell)).wait(timeout=120) == 0
    assert (repository.folder / "done").exists()
    assert "DVC is gone" not in (repository.folder.parent / "started.log").read_text()


def test_a_stage_runs_where_it_cannot_see_dvc(repository: Repository) -> None:
    # Like srun, which hands the environment on to a program that DVC did not start.
    repository.run("sh", "-c", f"DVC_STAGE=one {sys.executable} script.py; exit $?", timeout=60)
    assert (repository.folder / "done").exists()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["", "timeout 60", f"{sys.executable} -m torch.distributed.run --standalone"])
def test_a_stage_under_any_program_ends_with_dvc(launcher: str, repository: Repository) -> None:
    script = "script.py" if "torch" in launcher else f"{sys.executable} script.py"
    process = repro(repository, f"{launcher} {script}", STAGE_TAKES="60")
    stage = int(content(repository.folder / "began"))
    time.sleep(1)  # longer than the stage waits between two looks
    assert is_running(stage)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not is_running(stage), 10)
    assert not (repository.folder / "done").exists()


@pytest.mark.slow
def test_a_stage_that_starts_after_dvc_is_gone_does_nothing(repository: Repository) -> None:
    process = repro(repository, f"touch started; sleep 2; {sys.executable} script.py; echo $? > code")
    wait_until((repository.folder / "started").exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert content(repository.folder / "code") == "5\n"
    assert not (repository.folder / "began").exists()
