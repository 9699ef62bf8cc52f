"""`make restore`: what a killed experiment leaves goes, and nothing of one's own does; by the real DVC and Git."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smoke import ROOT

PIPELINE = """
stages:
  copy:
    cmd: python copy.py
    params: [unit, seconds]
    outs: [out.txt]
"""
COPY = """
import pathlib, re, time
params = dict(re.findall("^([a-z]+): (.*)$", pathlib.Path("params.yaml").read_text(), re.MULTILINE))
pathlib.Path("running").touch()
time.sleep(float(params["seconds"]))
pathlib.Path("out.txt").write_text(params["unit"])
"""


class Repository:
    """A repository of one stage, run and committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        }  # fmt: skip
        (folder / "dvc.yaml").write_text(PIPELINE)
        (folder / "copy.py").write_text(COPY)
        (folder / "params.yaml").write_text("unit: line\nseconds: 0\n")
        (folder / "mine.txt").write_text("as committed\n")
        (folder / ".gitignore").write_text("running\n")
        self("git", "init", "--quiet", "--initial-branch=main")
        self("dvc", "init", "--quiet")
        self("dvc", "repro")
        self("git", "add", "--all")
        self("git", "commit", "--quiet", "--message", "A run")

    def __call__(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    def git(self, *arguments: str) -> str:
        return self("git", *arguments).stdout.strip()

    def restore(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self(sys.executable, str(ROOT / "tools/restore.py"), *options, check=False)

    def start_experiment(self) -> subprocess.Popen[bytes]:
        """Start an experiment and return it in the middle of its stage."""
        (self.folder / "running").unlink()
        process = subprocess.Popen(
            ["dvc", "exp", "run", "--set-param", "unit=row", "--set-param", "seconds=60"], cwd=self.folder,
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not (self.folder / "running").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return process

    def kill(self, process: subprocess.Popen[bytes], stop: signal.Signals) -> None:
        """Kill an experiment, and the stage with it, which ends with DVC as this project's do."""
        os.killpg(process.pid, stop)
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def repository(finished: Repository, tmp_path: Path) -> Repository:
    """A copy of a finished repository, to change at will."""
    found = object.__new__(Repository)
    found.folder, found.environment = tmp_path / "copy", finished.environment
    shutil.copytree(finished.folder, found.folder)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT], ids=lambda stop: stop.name)
def test_after_a_killed_experiment_all_is_as_it_was(stop: signal.Signals, repository: Repository) -> None:
    (repository.folder / "mine.txt").write_text("my own work\n")
    process = repository.start_experiment()
    running = repository.restore()
    assert running.returncode == 5
    assert f"error: DVC is at work here (process {process.pid})" in running.stderr
    repository.kill(process, stop)
    assert not (repository.folder / "out.txt").exists()
    check = repository.restore("--check")
    if stop == signal.SIGKILL:
        assert check.returncode == 5
        assert "error: a killed `dvc exp run` left HEAD detached from main: `make restore`" in check.stderr
        assert repository.git("branch", "--show-current") == ""
    else:
        assert check.returncode == 0  # DVC had the time to go back to the branch itself
    result = repository.restore()
    assert result.returncode == 0, result.stderr
    assert repository.git("branch", "--show-current") == "main"
    assert repository.git("status", "--porcelain") == ""
    assert (repository.folder / "out.txt").read_text() == "line"
    assert repository.restore("--check").returncode == 0
    # What was one's own lies aside.
    assert "set aside: " in result.stdout
    assert "mine.txt" in result.stdout
    repository.git("checkout", "stash@{0}", "--", "mine.txt")
    assert (repository.folder / "mine.txt").read_text() == "my own work\n"
    # The next experiment runs as ever.
    repository("dvc", "exp", "run", "--set-param", "unit=word")
    assert (repository.folder / "out.txt").read_text() == "word"


def detach_as_dvc_does(repository: Repository) -> None:
    """Detach HEAD at the commit of its branch, in the words that DVC leaves in the reflog."""
    head = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", head)
    assert f"checkout: moving from main to {head}" in repository.git("reflog", "show", "--format=%gs", "HEAD")


def test_without_changes_nothing_is_set_aside(repository: Repository) -> None:
    (repository.folder / "untracked.txt").write_text("stays")
    result = repository.restore()
    assert result.returncode == 0, result.stderr
    assert re.match(r"back at \w+ A run, on main\n", result.stdout)
    assert repository.git("stash", "list") == ""
    assert (repository.folder / "untracked.txt").read_text() == "stays"


def test_a_change_comes_back_from_where_it_was_put(repository: Repository) -> None:
    detach_as_dvc_does(repository)
    (repository.folder / "params.yaml").write_text("unit: row\nseconds: 0\n")
    (repository.folder / "new.txt").write_text("new")
    repository.git("add", "new.txt")
    result = repository.restore()
    assert result.returncode == 0, result.stderr
    assert "new.txt" in result.stdout
    assert repository.git("status", "--porcelain") == ""
    repository.git("stash", "pop")
    assert (repository.folder / "params.yaml").read_text() == "unit: row\nseconds: 0\n"
    assert (repository.folder / "new.txt").read_text() == "new"


def test_a_commit_on_no_branch_is_not_left_behind(repository: Repository) -> None:
    detach_as_dvc_does(repository)
    repository.git("commit", "--quiet", "--allow-empty", "--message", "unawares")
    assert repository.restore("--check").returncode == 5
    result = repository.restore()
    assert result.returncode == 5
    assert "1 commits" in result.stderr
    assert "`git switch -c NAME`" in result.stderr
    repository.git("switch", "--quiet", "-c", "kept")
    assert repository.restore().returncode == 0
    assert repository.git("log", "-1", "--format=%s") == "unawares"


def test_whoever_looks_at_an_old_commit_stays_there(repository: Repository) -> None:
    repository.git("commit", "--quiet", "--allow-empty", "--message", "later")
    repository.git("checkout", "--quiet", "HEAD~1")
    assert repository.restore("--check").returncode == 0
    assert "on no branch" in repository.restore().stdout


@pytest.mark.parametrize("command", ["rebase", "merge"])
def test_what_git_is_in_the_middle_of_is_not_broken(command: str, repository: Repository) -> None:
    for branch in ("other", "main"):
        repository.git("checkout", "--quiet", *(["-b"] if branch == "other" else []), branch)
        (repository.folder / "mine.txt").write_text(branch)
        repository.git("commit", "--quiet", "--all", "--message", branch)
    assert repository("git", command, "other", check=False).returncode != 0
    before = repository.git("status", "--porcelain")
    result = repository.restore()
    assert result.returncode == 5
    assert "Git is in the middle of something" in result.stderr
    assert repository.git("status", "--porcelain") == before


def test_make_knows_what_a_killed_experiment_leaves() -> None:
    makefile = (ROOT / "Makefile").read_text()
    steps = {target: makefile.split(f"\n{target}: ")[1].split("\n\n")[0] for target in ("repro", "restore")}
    assert steps["repro"].index("python tools/restore.py --check") < steps["repro"].index("dvc repro")
    assert "python tools/restore.py\n" in steps["restore"] + "\n"
