"""``tools/check_lock.py``, the check that ``dvc.lock`` is fresh, with the real DVC and Git."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from smoke import ROOT
from workspace import IDENTITY, TinyRepository

PIPELINE = """
stages:
  download:
    cmd: cp text.txt corpus.txt
    always_changed: true
    deps: [text.txt]
    outs: [corpus.txt]
  train:
    foreach: ${runs}
    do:
      cmd: mkdir -p models && echo ${item} > models/${key}
      deps: [corpus.txt]
      outs: ["models/${key}"]
  evaluate:
    cmd: cat models/* > table.txt
    deps: [models]
    outs: [table.txt: {cache: false}]
"""
SCRIPT = ROOT / "tools" / "check_lock.py"


def params(**runs: int) -> str:
    return f"runs: {{{', '.join(f'{run}: {value}' for run, value in runs.items())}}}\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TinyRepository:
    """A repository with two runs, one of them old."""
    files = {"dvc.yaml": PIPELINE, "text.txt": "a\nb\n", ".gitignore": "/corpus.txt\n/models/\n"}
    files["params.yaml"] = params(old=1, other=2)
    return TinyRepository.make(tmp_path_factory.mktemp("tiny"), files)


@pytest.fixture
def repository(finished: TinyRepository, tmp_path: Path) -> TinyRepository:
    return finished.copy_to(tmp_path / "repository")


def check(repository: TinyRepository, *options: str) -> tuple[int, str, str]:
    done = repository.tool("check_lock.py", *options)
    return done.returncode, done.stdout, done.stderr


def remove_data(repository: TinyRepository, *names: str) -> None:
    """Remove outputs and the cache, as in a clone that pulled only a part."""
    for name in (".dvc/cache", *names):
        path = repository.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_the_commit_hook_accepts_a_change_only_after_the_pipeline_ran(repository: TinyRepository) -> None:
    hook = repository.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(SCRIPT)])}\n")
    hook.chmod(0o755)
    (repository.folder / "params.yaml").write_text(params(old=1, other=3))
    commit = ("git", *IDENTITY, "commit", "--quiet", "--all", "--message", "changed")
    stopped = repository.run(*commit, check=False)
    assert stopped.returncode == 1
    output = stopped.stdout + stopped.stderr
    assert "dvc.lock: stage 'train@other' has changed since it ran\n" in output
    assert "dvc.lock is not fresh: run `dvc repro`" in output
    assert "download" not in output
    repository.run("dvc", "repro")
    repository.run(*commit)
    assert repository.git("status", "--porcelain") == ""


def test_data_that_was_not_pulled_is_no_change(repository: TinyRepository) -> None:
    remove_data(repository, "models/old", "corpus.txt")
    code, output, note = check(repository)
    assert (code, output) == (0, "")
    assert re.fullmatch(r"not pulled: .*corpus\.txt.*models/old.*`dvc pull` gets them.*\n", note)
    # The copy that DVC was asked in is gone, and a file that it shared is unchanged.
    assert not list((repository.folder / ".dvc/tmp").glob("check-lock-*"))
    assert (repository.folder / "text.txt").read_text() == "a\nb\n"


@pytest.mark.slow
def test_a_renamed_run_is_pruned_from_the_lock_file(repository: TinyRepository) -> None:
    (repository.folder / "params.yaml").write_text(params(new=1, other=2))
    (repository.folder / "models/old").unlink()  # as the project's stages do with stale runs
    repository.run("dvc", "repro")
    code, output, _ = check(repository)
    assert code == 1
    assert output.startswith("dvc.lock: stage 'train@old' no longer exists\n")
    assert "--prune" in output
    before = (repository.folder / "dvc.lock").read_text()
    code, output, _ = check(repository, "--prune")
    assert (code, output) == (0, "dvc.lock: removed stage 'train@old', which no longer exists\n")
    # The lines of one stage are gone; the others are unchanged.
    begin = before.index("  train@old:")
    end = begin + before[begin:].index("\n  train@other:") + 1
    assert (repository.folder / "dvc.lock").read_text() == before[:begin] + before[end:]
    assert check(repository) == (0, "", "")


def test_every_pre_commit_hook_runs_an_existing_program() -> None:
    hooks = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    entries = [shlex.split(hook["entry"]) for hook in hooks]
    assert ["python", "tools/check_lock.py"] in entries
    for program, *arguments in entries:
        assert shutil.which(program, path=Path(sys.executable).parent), program
        assert program != "python" or (ROOT / arguments[0]).is_file()
