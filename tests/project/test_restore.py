"""``make restore`` undoes a killed experiment and loses no work, with the real DVC and Git."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from smoke import ROOT, SMALL
from workspace import TinyRepository, Workspace, stages_run, wait_until

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
    files["params.yaml"] = "unit: line\nseconds: 0\n"
    return TinyRepository.make(tmp_path_factory.mktemp("tiny"), files)


@pytest.fixture
def repository(finished: TinyRepository, tmp_path: Path) -> TinyRepository:
    return finished.copy_to(tmp_path / "repository")


def restored(repository: TinyRepository, *options: str) -> str:
    result = repository.tool("restore.py", *options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def refused(repository: TinyRepository, *options: str) -> str:
    result = repository.tool("restore.py", *options)
    assert result.returncode == 5
    return result.stderr


def started_experiment(repository: TinyRepository) -> subprocess.Popen[bytes]:
    """Start an experiment and return it in the middle of its stage."""
    (repository.folder / "running").unlink()
    process = repository.start("dvc", "exp", "run", "--set-param", "unit=row", "--set-param", "seconds=60")
    wait_until((repository.folder / "running").exists)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT], ids=lambda stop: stop.name)
def test_restore_undoes_a_killed_experiment(stop: signal.Signals, repository: TinyRepository) -> None:
    (repository.folder / "mine.txt").write_text("my own work\n")
    process = started_experiment(repository)
    assert f"error: DVC is at work here (process {process.pid})" in refused(repository)
    # The stage is killed with DVC; the project's own stages end when DVC does.
    os.killpg(process.pid, stop)
    process.wait(timeout=60)
    assert not (repository.folder / "out.txt").exists()
    if stop == signal.SIGKILL:
        complaint = "error: a killed `dvc exp run` left HEAD detached from main: `make restore`"
        assert complaint in refused(repository, "--check")
        assert repository.git("branch", "--show-current") == ""
    else:
        restored(repository, "--check")  # DVC had the time to go back to the branch itself
    said = restored(repository)
    assert repository.git("branch", "--show-current") == "main"
    assert repository.git("status", "--porcelain") == ""
    assert (repository.folder / "params.yaml").read_text() == "unit: line\nseconds: 0\n"
    assert (repository.folder / "out.txt").read_text() == "line"
    restored(repository, "--check")
    # The user's own change is in a stash.
    assert "set aside: " in said
    assert "mine.txt" in said
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


def test_a_user_may_detach_head(repository: TinyRepository) -> None:
    repository.git("checkout", "--quiet", repository.git("rev-parse", "HEAD"))  # as for a tag, or in CI
    restored(repository, "--check")
    assert "on no branch" in restored(repository)


def test_changes_that_restore_set_aside_come_back_with_git_stash_pop(repository: TinyRepository) -> None:
    detach_head_like_dvc(repository)
    (repository.folder / "params.yaml").write_text("unit: row\nseconds: 0\n")
    (repository.folder / "new.txt").write_text("new")
    repository.git("add", "new.txt")
    (repository.folder / "reports/score").mkdir(parents=True)
    (repository.folder / "reports/score/gru.json").write_text("{}")  # Git does not know the results of a new run
    assert "new.txt" in restored(repository)
    assert repository.git("status", "--porcelain") == ""
    assert not (repository.folder / "reports/score").exists()
    repository.git("stash", "pop")
    assert (repository.folder / "params.yaml").read_text() == "unit: row\nseconds: 0\n"
    assert (repository.folder / "new.txt").read_text() == "new"
    assert (repository.folder / "reports/score/gru.json").read_text() == "{}"


def test_restore_without_the_cache_says_what_makes_the_data(repository: TinyRepository) -> None:
    shutil.rmtree(repository.folder / ".dvc/cache")
    (repository.folder / "out.txt").unlink()
    (repository.folder / "params.yaml").write_text("unit: row\nseconds: 0\n")
    assert "1 others are not in DVC's cache: `make repro` makes them" in restored(repository)
    assert repository.git("status", "--porcelain") == ""


def test_what_dvc_has_not_stored_is_moved_aside(repository: TinyRepository) -> None:
    (repository.folder / "out.txt").unlink()
    (repository.folder / "out.txt").write_text("trained by hand for hours")
    said = restored(repository)
    assert (repository.folder / "out.txt").read_text() == "line"
    moved = next(repository.folder.glob("data/set-aside/*/out.txt"))
    assert f"moved out.txt, which DVC has not stored, to {moved.relative_to(repository.folder)}" in said
    assert moved.read_text() == "trained by hand for hours"


@pytest.mark.slow
def test_restore_moves_aside_what_is_in_no_cache_and_restores_what_is(finished: TinyRepository, tmp_path: Path) -> None:
    stages = PIPELINE + "  other:\n    cmd: mkdir -p two && echo ${unit} > two/a\n    outs: [two]\n"
    repository = finished.copy_to(tmp_path / "repository")
    (repository.folder / "dvc.yaml").write_text(stages)
    repository.run("dvc", "repro")
    repository.commit("Two outputs")
    # Of an experiment whose outputs were never saved; then the first object of the last commit is deleted.
    for name in ("out.txt", "two/a"):
        (repository.folder / name).unlink()
        (repository.folder / name).write_text("unsaved")
    md5 = hashlib.md5(b"line", usedforsecurity=False).hexdigest()
    (repository.folder / ".dvc/cache/files/md5" / md5[:2] / md5[2:]).unlink()
    assert "1 others are not in DVC's cache: `make repro` makes them" in restored(repository)
    assert [path.read_text() for path in repository.folder.glob("data/set-aside/*/out.txt")] == ["unsaved"]
    assert [path.read_text() for path in repository.folder.glob("data/set-aside/*/two/a")] == ["unsaved"]
    assert not (repository.folder / "out.txt").exists()
    assert (repository.folder / "two/a").read_text() == "line\n"
    repository.run("dvc", "repro")
    assert (repository.folder / "out.txt").read_text() == "line"


@pytest.mark.slow
def test_without_a_network_the_way_back_from_the_samples_results_loses_nothing(tmp_path: Path) -> None:
    # A corpus that a data folder has at first; then there is neither a folder nor a network.
    text = ((ROOT / "data/sample.txt").read_text(encoding="ascii") + "The end.\n").encode()
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora/sea.txt").write_bytes(text)
    entry = {
        "file": "sea.txt", "urls": ["http://127.0.0.1:1/sea.txt"], "sha256": hashlib.sha256(text).hexdigest(),
        "bytes": len(text), "line_separator": " ", "licence": "CC0-1.0", "description": "Another text",
    }  # fmt: skip
    workspace = Workspace(tmp_path)
    with (workspace.folder / "data/corpora.yaml").open("a") as registry:
        registry.write(f"  sea: {json.dumps(entry)}\n")
    workspace.begin(SMALL | {"download.corpus": "sea"})
    workspace.run("dvc", "repro", SEQLM_DATA_DIR=str(tmp_path / "corpora"))
    workspace.commit("Results")
    before = workspace.results()
    # A new machine has what is in Git, and no cache of verified downloads.
    workspace.git("clone", "--quiet", ".", "../clone/project")
    clone = Workspace(tmp_path / "clone")
    for place in (clone, workspace):
        place.environment["XDG_CACHE_HOME"] = str(tmp_path / "empty")
        (place.folder / "data/raw/corpus.txt").unlink(missing_ok=True)
        place.run("dvc", "repro")
        page = (place.folder / "reports/index.html").read_text()
        assert "SEQLM_DATA_DIR" in page  # how to get the corpus
        said = place.tool("restore.py")
        assert (said.returncode, place.git("status", "--porcelain")) == (0, "")
    # Here the trained models are still in the cache: nothing is computed again.
    assert workspace.results() == before
    assert stages_run(workspace.run("dvc", "repro").stdout) == ["download"]
    assert workspace.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_an_experiment_that_added_a_result_becomes_a_branch(repository: TinyRepository) -> None:
    # The commands of docs/howto/experiments.md. Git does not know reports/row.txt here, and the branch has it.
    repository.run("dvc", "exp", "run", "--name", "row", "--set-param", "unit=row")
    repository.run("dvc", "exp", "apply", "row")
    assert "reports/row.txt" in restored(repository)
    repository.run("dvc", "exp", "branch", "row", "try-row")
    repository.git("checkout", "--quiet", "try-row")
    repository.run("dvc", "checkout")
    assert (repository.folder / "reports/row.txt").read_text() == "row"


def test_restore_sees_a_change_that_git_takes_for_none(repository: TinyRepository) -> None:
    # As DVC changes a setting: to as many bytes, in the second in which Git recorded the file.
    params = repository.folder / "params.yaml"
    repository.git("config", "core.trustctime", "false")
    os.utime(params, (10**9, 10**9))
    repository.git("update-index", "--refresh")
    params.write_text("unit: row\nseconds: 60\n")
    os.utime(params, (10**9, 10**9))
    assert repository.git("status", "--porcelain") == ""
    assert "set aside: params.yaml" in restored(repository)
    assert params.read_text() == "unit: line\nseconds: 0\n"


def test_restore_leaves_no_commit_without_a_branch(repository: TinyRepository) -> None:
    detach_head_like_dvc(repository)
    repository.git("commit", "--quiet", "--allow-empty", "--message", "unnoticed")
    refused(repository, "--check")
    complaint = refused(repository)
    assert "1 commits" in complaint
    assert "`git switch -c NAME`" in complaint
    repository.git("switch", "--quiet", "-c", "kept")
    restored(repository)
    assert repository.git("log", "-1", "--format=%s") == "unnoticed"


def test_restore_stays_at_an_old_commit_that_the_user_checked_out(repository: TinyRepository) -> None:
    repository.git("commit", "--quiet", "--allow-empty", "--message", "later")
    repository.git("checkout", "--quiet", "HEAD~1")
    restored(repository, "--check")
    assert "on no branch" in restored(repository)


@pytest.mark.parametrize("command", ["rebase", "merge"])
def test_restore_does_not_interrupt_git(command: str, repository: TinyRepository) -> None:
    for branch in ("other", "main"):
        repository.git("checkout", "--quiet", *(["-b"] if branch == "other" else []), branch)
        (repository.folder / "mine.txt").write_text(branch)
        repository.git("commit", "--quiet", "--all", "--message", branch)
    assert repository.run("git", command, "other", check=False).returncode != 0
    before = repository.git("status", "--porcelain")
    assert "Git is in the middle of something" in refused(repository)
    assert repository.git("status", "--porcelain") == before
