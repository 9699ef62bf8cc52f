"""What every stage does: it ends with DVC, with one line and a code, and by hand it outlives its terminal."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage
from smoke import ROOT
from stages_by_hand import run_python, succeeded
from workspace import wait_until

SCRIPT = f"""
import os, sys, time
from pathlib import Path
sys.path[:0] = [{str(ROOT / "stages")!r}, {str(ROOT / "src")!r}]
from seqlm.pipeline.harness import stage

@stage()
def main(layout):
    (layout.root / "part").write_text(str(os.getpid()))
    (layout.root / "part").rename(layout.root / "began")
    time.sleep(float(os.environ["STAGE_TAKES"]))
    (layout.root / "done").touch()

main()
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
# A Python without DVC_STAGE in its environment, whose command has it: that is all that a stage sees of DVC.
DVC = """
import os, subprocess, sys
environment = os.environ | {"DVC_STAGE": "one", "DVC": str(os.getpid())}
stage = subprocess.Popen(sys.argv[2:], env=environment, start_new_session=True)
if sys.argv[1] == "waits": stage.wait()
"""


def start(folder: Path, does: str, *command: str, seconds: float) -> subprocess.Popen[bytes]:
    """Start a command as DVC would, which then waits for it or does not; the stage takes some seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "DVC_STAGE"}
    words = [sys.executable, "-c", DVC, does, *command, sys.executable, "script.py"]
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.Popen(words, cwd=folder, env=environment | {"STAGE_TAKES": str(seconds)})


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # at any moment
        return True


@pytest.mark.skipif(os.name == "nt", reason="needs sh and SIGKILL")
@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param([], id="alone"),
        pytest.param(["env", "A=b", "nice", "sh", "-c", '"$0" "$@"; true'], id="env, nice and sh"),
        pytest.param(TORCHRUN, id="torchrun", marks=pytest.mark.slow),
    ],
)
def test_a_stage_under_any_program_ends_with_dvc(launcher: list[str], tmp_path: Path) -> None:
    dvc = start(tmp_path, "waits", *launcher, seconds=60)
    wait_until((tmp_path / "began").exists)
    stage = psutil.Process(int((tmp_path / "began").read_text()))
    time.sleep(0.6)  # longer than the stage waits between two looks
    assert not has_ended(stage)
    dvc.kill()
    dvc.wait()
    wait_until(lambda: has_ended(stage), 10)
    assert not (tmp_path / "done").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs sh")
def test_a_stage_that_starts_after_dvc_is_gone_does_nothing(tmp_path: Path) -> None:
    # The shell adds nothing before its parent is another process.
    late = 'while [ "$(ps -o ppid= -p $$)" -eq "$DVC" ]; do sleep 0.01; done; "$0" "$@"; echo $? > part; mv part code'
    start(tmp_path, "leaves", "sh", "-c", late, seconds=0).wait()
    wait_until((tmp_path / "code").exists)
    assert (tmp_path / "code").read_text() == "5\n"
    assert not (tmp_path / "began").exists()


def test_by_hand_a_stage_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DVC_STAGE", raising=False)
    succeeded(run_python(SCRIPT, "--root", tmp_path, STAGE_TAKES="0"))
    assert (tmp_path / "done").exists()


OUT_OF_MEMORY = "error: out of memory: use a shorter text, a smaller model, or a machine with more memory\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (DataError("the text\n is short"), 3, "error: the text is short\n"),
        (MemoryError(), 5, OUT_OF_MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate"), 5, OUT_OF_MEMORY),
        (OSError(28, "No space left", "x"), 5, "error: x: No space left: free some space, then run again\n"),
    ],
)
def test_what_ends_a_stage_is_one_line_and_a_code(
    error: BaseException, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @stage()
    def main(_: Layout) -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        main(["--root", str(tmp_path)])
    assert (end.value.code, capsys.readouterr().err) == (code, said)


def test_an_experiment_makes_git_see_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @stage()
    def main(_: Layout) -> None:
        raise RuntimeError("of this program")

    monkeypatch.setenv("DVC_EXP_BASELINE_REV", "0")
    (tmp_path / "params.yaml").touch()
    os.utime(tmp_path / "params.yaml", (0, 0))
    with pytest.raises(RuntimeError, match="of this program"):  # a defect is not hidden
        main(["--root", str(tmp_path)])
    assert (tmp_path / "params.yaml").stat().st_mtime > 10**9
