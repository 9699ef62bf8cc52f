"""Differences between systems: line ends, names of folders, and what only POSIX or Linux offers."""

import os
import sys
from pathlib import Path

import pytest

from smoke import ROOT, SMALL, change_params
from stages_by_hand import RunStage, run_python, succeeded
from workspace import Repository, Workspace

# Wide enough for the compiled loops, with two threads that wait for each other.
SETTINGS = SMALL | {"num_threads": 2, "runs": {"plain": {"token": "char", "num_hiddens": 128, "max_tokens": 2000}}}
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="takes away what this system does not have")


def run_in(base: Path, **environment: str) -> Workspace:
    workspace = Workspace(base)
    workspace.environment |= environment
    workspace.begin(SETTINGS)
    workspace.run("dvc", "repro")
    return workspace


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hashes of all outputs on a system that lacks nothing."""
    return run_in(tmp_path_factory.mktemp("usual")).hashes()


@pytest.mark.slow
def test_a_folder_may_have_spaces_and_any_letters(usual: dict[str, str], tmp_path: Path) -> None:
    assert run_in(tmp_path / "Zeit und Räume – время 時間").hashes() == usual


@pytest.mark.slow
@linux_only
def test_results_are_the_same_without_file_locks_sched_yield_and_proc(usual: dict[str, str], tmp_path: Path) -> None:
    libraries = os.pathsep.join(str(tmp_path / "project" / name) for name in ("src", "tests/without"))
    workspace = run_in(tmp_path, SEQLM_WITHOUT="1", PYTHONPATH=libraries, SEQLM_TRACE="")
    (tmp_path / "stages").mkdir()
    for program in ("import fcntl", "import os; os.sched_yield", "open('/proc/self/stat')"):
        (tmp_path / "stages" / "try.py").write_text(program)
        assert workspace.run("python", f"{tmp_path}/stages/try.py", check=False).returncode != 0, program
    assert workspace.hashes() == usual


@linux_only
def test_a_stage_under_dvc_starts_where_it_can_see_no_process(run_script: RunStage, tmp_path: Path) -> None:
    libraries = os.pathsep.join(str(ROOT / name) for name in ("src", "tests/without"))
    succeeded(run_script("configure", SEQLM_WITHOUT="1", PYTHONPATH=libraries, DVC_STAGE="configure"))
    assert (tmp_path / "data" / "configs").is_dir()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_letters_that_the_terminal_lacks_become_escapes(encoding: str, run_script: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {"download.corpus": "время.txt"})
    (tmp_path / "время.txt").write_text("время идёт\n" * 20, encoding="utf-8")
    printed = succeeded(run_script("download", PYTHONIOENCODING=f"{encoding}:strict", PYTHONUTF8="0"))
    # The second letter is U+0440.
    assert ("время" if encoding == "utf-8" else "\\u0440") in printed


# Takes the lock of a run, without fcntl, beside a process that holds it, and after that one was killed.
TWO_TRAININGS = """
import os, signal, sys, time
from pathlib import Path
sys.modules["fcntl"] = None
from seqlm.core.errors import MachineError
from seqlm.train import checkpoints
checkpoints._LOCK_TIMEOUT_S = 0.3
folder, (reading, writing) = Path(sys.argv[1]), os.pipe()
if not (other := os.fork()):
    with checkpoints.run_lock(folder):
        os.write(writing, b"held")
        time.sleep(10)
os.read(reading, 4)
try:
    checkpoints.run_lock(folder)
except MachineError as error:
    print(error)
os.kill(other, signal.SIGKILL)
os.wait()
with checkpoints.run_lock(folder):
    print("free")
"""


@linux_only
def test_trainings_of_one_run_exclude_each_other_without_file_locks_of_the_system(tmp_path: Path) -> None:
    refusal, after = succeeded(run_python(TWO_TRAININGS, tmp_path)).splitlines()
    assert "another process is training it" in refusal
    assert after == "free"


def test_a_clone_keeps_line_ends_whatever_git_is_set_to(tmp_path: Path) -> None:
    # data/corpora.yaml and dvc.lock hold hashes of the bytes, and Git for Windows would change them by default.
    source = Repository(tmp_path / "source")
    (source.folder / "data").mkdir(parents=True)
    for name in (".gitattributes", "data/sample.txt", "data/corpora.yaml"):
        (source.folder / name).write_bytes((ROOT / name).read_bytes())
    source.git("init", "--quiet")
    source.commit("Begin")
    source.git("clone", "--quiet", "-c", "core.autocrlf=true", ".", "../clone")
    for name in ("data/sample.txt", "data/corpora.yaml"):
        assert (tmp_path / "clone" / name).read_bytes() == (ROOT / name).read_bytes()
