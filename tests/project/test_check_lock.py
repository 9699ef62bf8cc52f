"""``tools/check_lock.py``, the check that ``dvc.lock`` is fresh, with the real DVC and Git."""

import shutil
from pathlib import Path

import pytest

from workspace import TinyRepository

pytestmark = pytest.mark.slow  # each test makes a Git repository

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


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """A repository with two runs, one of them old."""
    files = {"dvc.yaml": PIPELINE, "text.txt": "a\nb\n", ".gitignore": "/corpus.txt\n/models/\n"}
    return TinyRepository.make(tmp_path, files | {"params.yaml": "runs: {old: 1, other: 2}\n"})


def check(repository: TinyRepository, *options: str) -> tuple[int, str, str]:
    done = repository.tool("check_lock.py", *options)
    return done.returncode, done.stdout, done.stderr


def test_a_change_is_named_until_the_pipeline_ran(repository: TinyRepository) -> None:
    params = repository.folder / "params.yaml"
    params.write_text("runs: {old: 1, other: 3}\n")
    code, output, _ = check(repository)
    assert code == 1
    assert "dvc.lock: stage 'train@other' has changed since it ran\n" in output
    assert "download" not in output  # which always changes
    params.write_text("runs: {old: 1, other: 2}\n")
    (repository.folder / "table.txt").write_text("edited by hand\n")
    assert "stage 'evaluate' has changed" in check(repository)[1]
    repository.git("checkout", "table.txt")
    # Data that was not pulled is no change, and the copy that DVC was asked in is gone.
    shutil.rmtree(repository.folder / ".dvc/cache")
    for name in ("models/old", "corpus.txt"):
        (repository.folder / name).unlink()
    code, output, missing = check(repository)
    assert (code, output) == (0, "")
    assert missing.startswith("not pulled: corpus.txt, models/old: ")
    assert not list((repository.folder / ".dvc/tmp").glob("check-lock-*"))


def test_a_renamed_run_is_pruned_from_the_lock_file(repository: TinyRepository) -> None:
    (repository.folder / "params.yaml").write_text("runs: {new: 1, other: 2}\n")
    (repository.folder / "models/old").unlink()  # as the project's stages do with stale runs
    repository.run("dvc", "repro")
    code, output, _ = check(repository)
    assert code == 1
    assert output.startswith("dvc.lock: stage 'train@old' no longer exists\n")
    before = (repository.folder / "dvc.lock").read_text()
    assert check(repository, "--prune")[0] == 0
    # The lines of one stage are gone; the others are unchanged.
    begin = before.index("  train@old:")
    end = begin + before[begin:].index("\n  train@other:") + 1
    assert (repository.folder / "dvc.lock").read_text() == before[:begin] + before[end:]
    assert check(repository) == (0, "", "")
