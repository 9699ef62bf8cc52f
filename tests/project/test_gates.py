"""The gates: ``dvc.lock`` is fresh, and results are within a tolerance of another revision's; with DVC and Git."""

import json
import shutil
from pathlib import Path

import pytest

from workspace import Repository, TinyRepository

pytestmark = pytest.mark.slow  # each test makes Git repositories

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
def pipeline(tmp_path: Path) -> TinyRepository:
    files = {"dvc.yaml": PIPELINE, "text.txt": "a\nb\n", ".gitignore": "/corpus.txt\n/models/\n"}
    return TinyRepository.make(tmp_path, files | {"params.yaml": "runs: {old: 1, other: 2}\n"})


def check(repository: TinyRepository, *options: str) -> tuple[int, str, str]:
    done = repository.tool("check_lock.py", *options)
    return done.returncode, done.stdout, done.stderr


def test_a_change_is_named_until_the_pipeline_ran(pipeline: TinyRepository) -> None:
    params = pipeline.folder / "params.yaml"
    params.write_text("runs: {old: 1, other: 3}\n")
    code, output, _ = check(pipeline)
    assert code == 1
    assert "dvc.lock: stage 'train@other' has changed since it ran\n" in output
    assert "download" not in output  # which always changes
    params.write_text("runs: {old: 1, other: 2}\n")
    (pipeline.folder / "table.txt").write_text("edited by hand\n")
    assert "stage 'evaluate' has changed" in check(pipeline)[1]
    pipeline.git("checkout", "table.txt")
    # Data that was not pulled is no change, and the copy that DVC was asked in is gone.
    shutil.rmtree(pipeline.folder / ".dvc/cache")
    for name in ("models/old", "corpus.txt"):
        (pipeline.folder / name).unlink()
    code, output, missing = check(pipeline)
    assert (code, output) == (0, "")
    assert missing.startswith("not pulled: corpus.txt, models/old: ")
    assert not list((pipeline.folder / ".dvc/tmp").glob("check-lock-*"))


def test_a_renamed_run_is_pruned_from_the_lock_file(pipeline: TinyRepository) -> None:
    (pipeline.folder / "params.yaml").write_text("runs: {new: 1, other: 2}\n")
    (pipeline.folder / "models/old").unlink()  # as the project's stages do with stale runs
    pipeline.run("dvc", "repro")
    code, output, _ = check(pipeline)
    assert code == 1
    assert output.startswith("dvc.lock: stage 'train@old' no longer exists\n")
    before = (pipeline.folder / "dvc.lock").read_text()
    assert check(pipeline, "--prune")[0] == 0
    # The lines of one stage are gone; the others are unchanged.
    begin = before.index("  train@old:")
    end = begin + before[begin:].index("\n  train@other:") + 1
    assert (pipeline.folder / "dvc.lock").read_text() == before[:begin] + before[end:]
    assert check(pipeline) == (0, "", "")


BOOK = {"name": "time_machine", "sha256": "8" * 64}


def metrics(**bits: float | None) -> dict[str, dict[str, dict[str, float | None]]]:
    return {model: {split: {"bits_per_character": value} for split in ("val", "test")} for model, value in bits.items()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path)
    found.git("init", "--quiet", "--initial-branch=main")
    found.run("dvc", "init", "--quiet")
    put(found, metrics(lstm=2.0, trigram=2.8, zero=None))
    found.commit("results")
    return found


def put(repository: Repository, results: object, corpus: object = BOOK) -> None:
    for name, value in (("evaluate/metrics.json", results), ("download/summary.json", corpus)):
        path = repository.folder / "reports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("results", "code", "printed"),
    [
        (metrics(lstm=2.1, trigram=2.8), 1, "WORSE lstm on val: 2.0 -> 2.1 (+5.00%)\nWORSE lstm on test: 2.0 -> 2.1 "),
        (metrics(lstm=2.04, trigram=2.8), 0, "lstm on val: 2.0 -> 2.04 (+2.00%)\n"),  # the tolerance itself
        (metrics(lstm=2.0), 1, "WORSE trigram on val: 2.8 -> None\n"),
        (metrics(lstm=None, trigram=2.8), 1, "WORSE lstm on val: 2.0 -> None\n"),
        (metrics(lstm=2.0, trigram=2.8, zero=None), 0, ""),
    ],
)
def test_the_workspace_or_a_commit_is_compared(
    results: object, code: int, printed: str, repository: Repository
) -> None:
    put(repository, results)
    found = repository.tool("compare.py")
    assert (found.returncode, found.stdout[: len(printed)], found.stderr) == (code, printed, "")
    assert bool(found.stdout) == bool(printed)
    repository.git("commit", "--quiet", "--all", "--allow-empty", "--message", "changed")
    assert repository.tool("compare.py", "HEAD~1", "HEAD").stdout == found.stdout


def test_what_cannot_be_compared_is_said_in_one_line(repository: Repository) -> None:
    put(repository, metrics(lstm=2.0), BOOK | {"name": "sample", "sha256": "2" * 64})
    for found in (repository.tool("compare.py"), repository.tool("compare.py", "no-such-branch")):
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
