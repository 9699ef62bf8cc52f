"""A stage looks for DVC above it, past any program, and ends when it is gone: under the real DVC."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from smoke import ROOT

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


class Repository:
    """A repository with one stage, whose script does next to nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        (folder / "script.py").write_text(SCRIPT.format(stages=str(ROOT / "stages")))
        for command in (("git", "init", "--quiet"), ("dvc", "init", "--quiet")):
            subprocess.run(command, cwd=folder, env=self.environment, check=True)

    def start(self, command: str, **environment: str) -> subprocess.Popen[str]:
        with (self.folder / "dvc.yaml").open("w") as file:
            YAML().dump({"stages": {"one": {"cmd": command, "always_changed": True}}}, file)
        return subprocess.Popen(
            ["dvc", "repro"], cwd=self.folder, env=self.environment | environment, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait_for(self, name: str) -> str:
        wait_until(lambda: bool((self.folder / name).exists() and (self.folder / name).read_text()))
        return (self.folder / name).read_text()


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.skipif(not Path("/proc").is_dir() or not shutil.which("timeout"), reason="needs the tools of Linux")
@pytest.mark.parametrize("launcher", ["timeout 60 {}", "env A=b nice timeout 60 sh -c '{} & wait $!'"])
def test_a_stage_finds_dvc_above_any_program(launcher: str, repository: Repository, tmp_path: Path) -> None:
    shell = tmp_path / "unheard-of"  # tcsh and the like: DVC uses the user's own shell
    shutil.copy(shutil.which("sh") or "", shell)
    process = repository.start(launcher.format(f"{sys.executable} script.py"), SHELL=str(shell))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "DVC is gone" not in output
    assert (tmp_path / "done").exists()


def test_a_stage_from_whose_place_dvc_cannot_be_seen_runs(repository: Repository, tmp_path: Path) -> None:
    # As srun does it: the environment is handed on, to a program that DVC did not start.
    command = f"DVC_STAGE=one {sys.executable} script.py; exit $?"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=repository.environment, check=True, timeout=60)
    assert (tmp_path / "done").exists()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["", "timeout 60", f"{sys.executable} -m torch.distributed.run --standalone"])
def test_a_stage_under_any_program_ends_with_dvc(launcher: str, repository: Repository, tmp_path: Path) -> None:
    script = "script.py" if "torch" in launcher else f"{sys.executable} script.py"
    process = repository.start(f"{launcher} {script}", STAGE_TAKES="60")
    stage = int(repository.wait_for("began"))
    time.sleep(1)  # longer than it waits between two looks
    assert runs(stage)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not runs(stage), 10)
    assert not (tmp_path / "done").exists()


@pytest.mark.slow
def test_a_stage_that_starts_when_dvc_is_gone_does_nothing(repository: Repository, tmp_path: Path) -> None:
    process = repository.start(f"touch started; sleep 2; {sys.executable} script.py; echo $? > code")
    wait_until(lambda: (tmp_path / "started").exists())
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert repository.wait_for("code") == "5\n"
    assert not (tmp_path / "began").exists()
