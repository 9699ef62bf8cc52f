"""``make restore`` undoes a killed experiment and loses no work, with the real DVC and Git."""

import os
import re
import signal
from pathlib import Path

import pytest

from stages_by_hand import refused, succeeded
from workspace import Finished, TinyRepository, wait_until

PIPELINE = """
stages:
  copy:
    cmd: python copy.py
    params: [unit, seconds]
    outs: [out.txt]
  report:
    cmd: mkdir -p reports && cp out.txt reports/${unit}.txt
    deps: [out.txt]
    outs: ["reports/${unit}.txt": {cache: false}]
"""
PARAMS = "unit: line\nseconds: 0\ndevice: cpu\n"
COPY = """
import pathlib, re, time
params = dict(re.findall("^([a-z]+): (.*)$", pathlib.Path("params.yaml").read_text(), re.MULTILINE))
pathlib.Path("running").touch()
time.sleep(float(params["seconds"]))
pathlib.Path("out.txt").write_text(params["unit"])
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TinyRepository:
    files = {"dvc.yaml": PIPELINE, "copy.py": COPY, "mine.txt": "as committed\n", ".gitignore": "running\n"}
    return TinyRepository.make(tmp_path_factory.mktemp("tiny"), files | {"params.yaml": PARAMS})


@pytest.fixture
def repository(finished: TinyRepository, tmp_path: Path) -> TinyRepository:
    return finished.copy_to(tmp_path / "repository")


def restore(repository: TinyRepository, *options: str) -> Finished:
    return repository.tool("restore.py", *options)


@pytest.mark.slow  # runs experiments
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "Ctrl-C"])
def test_restore_undoes_a_stopped_experiment(killed: bool, repository: TinyRepository) -> None:
    (repository.folder / "mine.txt").write_text("my own work\n")
    (repository.folder / "running").unlink()
    process = repository.start("dvc", "exp", "run", "--set-param", "unit=row", "--set-param", "seconds=60")
    wait_until((repository.folder / "running").exists)
    refused(restore(repository), 5, f"error: DVC is at work here (process {process.pid})")
    # The stage is stopped with DVC, as by a terminal; the project's own stages end when DVC does.
    os.killpg(process.pid, signal.SIGKILL if killed else signal.SIGINT)
    process.wait(timeout=60)
    assert not (repository.folder / "out.txt").exists()
    if killed:  # else DVC had the time to go back to the branch itself
        refused(restore(repository, "--check"), 5, "left HEAD detached from main: `make restore`")
    said = succeeded(restore(repository))
    assert repository.git("branch", "--show-current") == "main"
    assert repository.git("status", "--porcelain") == ""
    assert (repository.folder / "params.yaml").read_text() == PARAMS
    assert (repository.folder / "out.txt").read_text() == "line"
    assert re.search("set aside: .*mine.txt", said)
    repository.git("checkout", "stash@{0}", "--", "mine.txt")
    assert (repository.folder / "mine.txt").read_text() == "my own work\n"
    # The next experiment works.
    repository.run("dvc", "exp", "run", "--set-param", "unit=word")
    assert (repository.folder / "out.txt").read_text() == "word"


def detach_head_like_dvc(repository: TinyRepository) -> None:
    """Detach HEAD at the commit of its branch, with the same words in the reflog and the same reference as DVC."""
    head = repository.git("rev-parse", "HEAD")
    repository.git("update-ref", "refs/exps/exec/EXEC_HEAD", head)
    repository.git("checkout", "--quiet", head)
    assert f"checkout: moving from main to {head}" in repository.git("reflog", "show", "--format=%gs", "HEAD")


def test_changes_that_restore_set_aside_come_back_with_git_stash_pop(repository: TinyRepository) -> None:
    detach_head_like_dvc(repository)
    (repository.folder / "params.yaml").write_text(PARAMS.replace("line", "row"))
    (repository.folder / "new.txt").write_text("new")
    repository.git("add", "new.txt")
    (repository.folder / "reports/train").mkdir(parents=True)
    (repository.folder / "reports/train/gru.json").write_text("{}")  # Git does not know the results of a new run
    assert "new.txt" in succeeded(restore(repository))
    assert repository.git("status", "--porcelain") == ""
    assert not (repository.folder / "reports/train").exists()
    repository.git("stash", "pop")
    assert (repository.folder / "new.txt").read_text() == "new"
    assert (repository.folder / "reports/train/gru.json").read_text() == "{}"


def test_what_dvc_has_not_stored_is_moved_aside(repository: TinyRepository) -> None:
    (repository.folder / "out.txt").unlink()
    (repository.folder / "out.txt").write_text("trained by hand for hours")
    (folder,) = re.findall("moved files that DVC has not stored to (.*)", succeeded(restore(repository)))
    assert (repository.folder / "out.txt").read_text() == "line"
    assert (repository.folder / folder / "out.txt").read_text() == "trained by hand for hours"


def test_restore_sees_a_change_that_git_takes_for_none(repository: TinyRepository) -> None:
    # As DVC changes a setting: to as many bytes, in the second in which Git recorded the file.
    params = repository.folder / "params.yaml"
    repository.git("config", "core.trustctime", "false")
    os.utime(params, (10**9, 10**9))
    repository.git("update-index", "--refresh")
    params.write_text(PARAMS.replace("line", "word"))
    os.utime(params, (10**9, 10**9))
    assert repository.git("status", "--porcelain") == ""
    assert "set aside: params.yaml" in succeeded(restore(repository))
    assert params.read_text() == PARAMS


def test_restore_leaves_no_commit_without_a_branch(repository: TinyRepository) -> None:
    detach_head_like_dvc(repository)
    repository.git("commit", "--quiet", "--allow-empty", "--message", "unnoticed")
    assert restore(repository, "--check").returncode == 5
    refused(result := restore(repository), 5, "1 commits")
    assert "`git switch -c NAME`" in result.stderr
    repository.git("switch", "--quiet", "-c", "kept")
    succeeded(restore(repository))
    assert repository.git("log", "-1", "--format=%s") == "unnoticed"


def test_restore_does_not_interrupt_dvc_and_no_second_run_begins(repository: TinyRepository) -> None:
    detach_head_like_dvc(repository)
    (repository.folder / "params.yaml").write_text(PARAMS.replace("seconds: 0", "seconds: 60"))
    (repository.folder / "running").unlink()
    process = repository.start("dvc", "repro")
    wait_until((repository.folder / "running").exists)
    for options in ([], ["--check"]):
        refused(restore(repository, *options), 5, f"error: DVC is at work here (process {process.pid}): wait for it")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    refused(restore(repository, "--check"), 5, "left HEAD detached from main: `make restore`")


def test_restore_does_not_interrupt_git(repository: TinyRepository) -> None:
    for branch in ("other", "main"):
        repository.git("checkout", "--quiet", *(["-b"] if branch == "other" else []), branch)
        (repository.folder / "mine.txt").write_text(branch)
        repository.git("commit", "--quiet", "--all", "--message", branch)
    assert repository.run("git", "merge", "other", check=False).returncode != 0
    before = repository.git("status", "--porcelain")
    refused(restore(repository), 5, "Git is in the middle of something")
    assert repository.git("status", "--porcelain") == before
