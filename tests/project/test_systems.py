"""What differs from system to system: line ends, the letters of a folder's name, and what only POSIX or Linux has."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smoke import ROOT, SMALL, change_params
from stages_by_hand import RunStage
from workspace import IDENTITY, Workspace

FOLDER = "Zeit und Räume – время 時間"
# Wide enough for the compiled loops, and two threads that wait for each other.
SETTINGS = SMALL | {"num_threads": 2, "runs": {"plain": {"token": "char", "num_hiddens": 128, "max_tokens": 2000}}}
without_posix = pytest.mark.skipif(sys.platform != "linux", reason="takes away what this system does not have")


def outs(workspace: Workspace) -> dict[str, Any]:
    """Return the hash of everything that the pipeline made."""
    return {out["path"]: out["md5"] for stage in workspace.lock().values() for out in stage.get("outs", [])}


def run_in(base: Path, **environment: str) -> Workspace:
    """Return a workspace below ``base`` in which the pipeline ran once."""
    workspace = Workspace(base / "project", base / "traces")
    workspace.environment |= environment
    workspace.begin(SETTINGS)
    workspace.run("dvc", "repro", timeout=1800)
    return workspace


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return outs(run_in(tmp_path_factory.mktemp("usual")))


@pytest.mark.slow
def test_a_folder_may_be_named_with_spaces_and_any_letters(
    usual: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = run_in(tmp_path_factory.mktemp("named") / FOLDER)
    assert outs(elsewhere) == usual


@pytest.mark.slow
@without_posix
def test_without_locks_of_the_system_without_yielding_and_without_proc_everything_is_the_same(
    usual: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("without")
    libraries = os.pathsep.join(str(base / "project" / name) for name in ("src", "tests/without"))
    workspace = run_in(base, SEQLM_WITHOUT="1", PYTHONPATH=libraries, SEQLM_TRACE="")
    for script in ("import fcntl", "import os; os.sched_yield", "open('/proc/self/stat')"):
        assert refused(workspace, script), f"{script} was not taken away"
    assert outs(workspace) == usual


def refused(workspace: Workspace, script: str) -> bool:
    folder = workspace.folder.parent / "stages"
    folder.mkdir(exist_ok=True)
    (folder / "try.py").write_text(script)
    return workspace.run("python", f"{folder}/try.py", check=False).returncode != 0


@without_posix
def test_under_dvc_a_stage_starts_where_no_process_can_be_seen(run_script: RunStage, tmp_path: Path) -> None:
    libraries = os.pathsep.join(str(ROOT / name) for name in ("src", "tests/without"))
    result = run_script("configure", SEQLM_WITHOUT="1", PYTHONPATH=libraries, DVC_STAGE="configure")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "data" / "configs").is_dir()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_letters_that_a_terminal_lacks_end_no_stage(encoding: str, run_script: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {"download.corpus": "время.txt"})
    (tmp_path / "время.txt").write_text("время идёт\n" * 20, encoding="utf-8")
    result = run_script("download", PYTHONIOENCODING=f"{encoding}:strict", PYTHONUTF8="0")
    assert result.returncode == 0, result.stderr
    # The second letter, U+0440, is an escape where the encoding has none.
    assert ("время" if encoding == "utf-8" else "\\u0440") in result.stdout


HOLD = """
import sys, time
from pathlib import Path
sys.modules["fcntl"] = None
from seqlm.core.errors import MachineError
from seqlm.train import checkpoints
checkpoints._LOCK_TIMEOUT_S = 1.0
print("ready", flush=True)
for _ in sys.stdin:
    try:
        with checkpoints.run_lock(Path(sys.argv[1])):
            print("held", flush=True)
            time.sleep(60 if sys.argv[2] == "long" else 0)
    except MachineError as error:
        print(error, flush=True)
"""


@without_posix
def test_without_locks_of_the_system_trainings_are_kept_apart_all_the_same(tmp_path: Path) -> None:
    def start(length: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(tmp_path), length]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(process: subprocess.Popen[str]) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("now\n")
        process.stdin.flush()
        return process.stdout.readline()

    with start("long") as first, start("short") as second:
        for process in (first, second):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        assert ask(first) == "held\n"
        assert "another training of it is running" in ask(second)
        first.kill()
        first.wait()
        assert ask(second) == "held\n"
        second.communicate()


def test_a_clone_that_would_change_line_ends_does_not(tmp_path: Path) -> None:
    # As Git for Windows is installed by default. The hashes in data/corpora.yaml and dvc.lock are those of the bytes.
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    for name in (".gitattributes", "data/sample.txt", "data/corpora.yaml"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    git = ["git", *IDENTITY]
    subprocess.run([*git, "init", "--quiet"], cwd=source, check=True)
    subprocess.run([*git, "add", "--all"], cwd=source, check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "Begin"], cwd=source, check=True)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "-c", "core.autocrlf=true", source, clone], check=True)
    for name in ("data/sample.txt", "data/corpora.yaml"):
        assert (clone / name).read_bytes() == (ROOT / name).read_bytes()
