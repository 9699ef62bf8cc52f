"""The commit hook for a fresh dvc.lock, in a repository of two stages, by the real DVC and the real Git."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from smoke import ROOT

PIPELINE = """
stages:
  download:
    cmd: cp text.txt corpus.txt
    always_changed: true
    deps: [text.txt]
    outs: [corpus.txt]
  count:
    cmd: wc -l < corpus.txt > lines.txt
    params: [unit]
    deps: [corpus.txt]
    outs: [lines.txt]
"""
SCRIPT = ROOT / "tools" / "check_lock.py"


def run(folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, check=check, capture_output=True, text=True
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    (tmp_path / "params.yaml").write_text("unit: line\n")
    (tmp_path / "text.txt").write_text("a\nb\n")
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "dvc", "init", "--quiet")
    run(tmp_path, "dvc", "repro")
    run(tmp_path, "git", "add", "--all")
    run(tmp_path, "git", "config", "user.name", "a")
    run(tmp_path, "git", "config", "user.email", "a@example.org")
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(SCRIPT)])}\n")
    hook.chmod(0o755)
    run(tmp_path, "git", "commit", "--quiet", "--message", "fresh")
    return tmp_path


def remove_data(folder: Path) -> None:
    """Make the repository as a fresh clone has it."""
    shutil.rmtree(folder / ".dvc" / "cache")
    for name in ("corpus.txt", "lines.txt"):
        (folder / name).unlink()


@pytest.mark.parametrize("cloned", [False, True])
def test_a_changed_setting_stops_the_commit_until_the_pipeline_ran(cloned: bool, repository: Path) -> None:
    if cloned:
        remove_data(repository)
    assert run(repository, sys.executable, str(SCRIPT)).stdout == ""
    (repository / "params.yaml").write_text("unit: row\n")
    commit = ("git", "commit", "--quiet", "--all", "--message", "changed")
    stopped = run(repository, *commit, check=False)
    assert stopped.returncode == 1
    assert "dvc.lock is not fresh: run `dvc repro`" in stopped.stdout + stopped.stderr
    run(repository, "dvc", "repro")
    run(repository, *commit)
    assert run(repository, "git", "status", "--porcelain").stdout == ""


def test_the_stage_that_changed_is_named(repository: Path) -> None:
    (repository / "params.yaml").write_text("unit: row\n")
    result = run(repository, sys.executable, str(SCRIPT), check=False)
    assert result.returncode == 1
    assert "stage 'count' has changed" in result.stdout
    assert "download" not in result.stdout


def test_a_broken_pipeline_file_is_not_fresh(repository: Path) -> None:
    (repository / "dvc.yaml").write_text("stages: [\n")
    assert run(repository, sys.executable, str(SCRIPT), check=False).returncode == 1


def test_every_hook_runs_something_that_is_there() -> None:
    hooks = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    entries = [shlex.split(hook["entry"]) for hook in hooks]
    assert ["python", "tools/check_lock.py"] in entries
    for program, *arguments in entries:
        assert shutil.which(program, path=Path(sys.executable).parent), program
        assert program != "python" or (ROOT / arguments[0]).is_file()
