"""A lock file of which a part of the data is not here, and one with runs that are gone: by the real DVC."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smoke import ROOT

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


class Repository:
    """A repository of four stages, two of them runs, that ran once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "dvc.yaml").write_text(PIPELINE)
        (folder / "text.txt").write_text("a\nb\n")
        (folder / ".gitignore").write_text("/corpus.txt\n/models/\n")
        self.set_runs("old: 1", "other: 2")
        self("git", "init", "--quiet")
        self("dvc", "init", "--quiet")
        self("dvc", "repro")

    def set_runs(self, *runs: str) -> None:
        (self.folder / "params.yaml").write_text(f"runs: {{{', '.join(runs)}}}\n")

    def __call__(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(command, cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    def check_lock(self, *options: str) -> tuple[int, str, str]:
        done = self(sys.executable, str(ROOT / "tools/check_lock.py"), *options, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("finished") / "repository")


@pytest.fixture
def repository(finished: Repository, tmp_path: Path) -> Repository:
    """A copy of a finished repository, to change at will."""
    found = object.__new__(Repository)
    found.folder = tmp_path / "repository"
    shutil.copytree(finished.folder, found.folder)
    return found


@pytest.mark.parametrize("missing", ["models/old", "models", "corpus.txt"])
def test_what_was_not_pulled_is_no_change(missing: str, repository: Repository) -> None:
    path = repository.folder / missing
    shutil.rmtree(repository.folder / ".dvc/cache")
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, said, noted = repository.check_lock()
    assert (code, said) == (0, "")
    assert noted.startswith(f"not pulled: {missing}")
    assert "`dvc pull` brings them" in noted
    # The copy that was asked about is gone, and the file that it shared is as it was.
    assert not list((repository.folder / ".dvc/tmp").glob("check-lock-*"))
    assert (repository.folder / "text.txt").read_text() == "a\nb\n"


def test_a_change_is_seen_whether_the_data_is_here_or_not(repository: Repository) -> None:
    repository.set_runs("old: 1", "other: 3")
    for _ in range(2):
        code, said, _ = repository.check_lock()
        assert code == 1
        assert said.startswith("dvc.lock: stage 'train@other' has changed since it ran\n")
        assert "run `dvc repro`" in said
        shutil.rmtree(repository.folder / "models", ignore_errors=True)


def test_a_run_that_was_renamed_leaves_the_lock_file(repository: Repository) -> None:
    repository.set_runs("new: 1", "other: 2")
    (repository.folder / "models/old").unlink()  # as this project's stages do with what no run owns
    repository("dvc", "repro")
    code, said, _ = repository.check_lock()
    assert code == 1
    assert said.startswith("dvc.lock: stage 'train@old' is in no dvc.yaml any more\n")
    assert "--prune" in said
    before = (repository.folder / "dvc.lock").read_text()
    code, said, _ = repository.check_lock("--prune")
    assert (code, said) == (0, "dvc.lock: took out stage 'train@old', which is in no dvc.yaml any more\n")
    after = (repository.folder / "dvc.lock").read_text()
    # The lines of one stage are gone, and no other is touched.
    begin = before.index("  train@old:")
    end = begin + before[begin:].index("\n  train@other:") + 1
    assert after == before[:begin] + before[end:]
    assert repository.check_lock() == (0, "", "")
    assert repository.check_lock("--prune") == (0, "", "")


def test_make_repro_prunes_what_it_has_made() -> None:
    steps = (ROOT / "Makefile").read_text().split("\nrepro: ")[1].split("\n\n")[0]
    assert steps.index("dvc repro") < steps.index("python tools/check_lock.py --prune")
