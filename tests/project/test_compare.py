"""The gate: revisions of a real repository, compared within a tolerance."""

import json
from pathlib import Path

import pytest

import compare as tool
from workspace import Finished, Repository

BOOK = {"name": "time_machine", "sha256": "8" * 64}


def metrics(**bits: float | None) -> dict[str, dict[str, dict[str, float | None]]]:
    return {model: {split: {"bits_per_character": value} for split in ("val", "test")} for model, value in bits.items()}


BEFORE = metrics(lstm=2.0, trigram=2.8, zero=None)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path)
    found.git("init", "--quiet", "--initial-branch=main")
    found.run("dvc", "init", "--quiet")
    put(found, BEFORE)
    found.commit("results")
    return found


def put(repository: Repository, results: object, corpus: object = BOOK) -> None:
    for name, value in (("evaluate/metrics.json", results), ("download/summary.json", corpus)):
        path = repository.folder / "reports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def compare(repository: Repository, *revisions: str) -> Finished:
    return repository.tool("compare.py", *revisions)


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
def test_models_may_get_a_little_worse(
    results: object, code: int, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"HEAD": BEFORE, None: results}
    monkeypatch.setattr(tool, "read", lambda name, revision: BOOK if "download" in name else found[revision])
    assert tool.main() == code
    out = capsys.readouterr().out
    assert (out[: len(printed)], bool(out)) == (printed, bool(printed))


@pytest.mark.slow  # makes a Git repository
def test_the_workspace_or_a_commit_is_compared(repository: Repository) -> None:
    put(repository, metrics(lstm=2.1, trigram=2.8))
    found = compare(repository)
    assert (found.returncode, found.stdout.count("WORSE"), found.stderr) == (1, 2, "")
    repository.git("commit", "--quiet", "--all", "--message", "changed")
    assert compare(repository, "HEAD~1", "HEAD").stdout == found.stdout


@pytest.mark.slow
def test_what_cannot_be_compared_is_said_in_one_line(repository: Repository) -> None:
    put(repository, metrics(lstm=2.0), BOOK | {"name": "sample", "sha256": "2" * 64})
    for found in (compare(repository), compare(repository, "no-such-branch")):
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
