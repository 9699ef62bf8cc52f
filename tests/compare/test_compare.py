"""The gate: two commits of a real repository, compared."""

import json
import subprocess
from pathlib import Path

import pytest

from seqlm.compare.comparison import compare_metrics, failures
from stages_by_hand import RunStage

MEASURES = "reports/evaluate/metrics.json"


def measures(**bits: float | None) -> dict[str, dict[str, dict[str, float | None]]]:
    return {model: {split: {"bits_per_character": value} for split in ("val", "test")} for model, value in bits.items()}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    put(tmp_path, json.dumps(measures(lstm=2.0, trigram=2.8)))
    git(tmp_path, "add", MEASURES)
    git(tmp_path, "commit", "--quiet", "--message", "before")
    return tmp_path


def put(folder: Path, content: str) -> None:
    (folder / MEASURES).parent.mkdir(parents=True, exist_ok=True)
    (folder / MEASURES).write_text(content)


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (json.dumps(measures(lstm=2.1, trigram=2.8)), 1, "| lstm | test | 2.0000 | 2.1000 | +5.00% | worse |"),
        (json.dumps(measures(lstm=2.02, trigram=2.8)), 0, "4 of 4 values are the same"),
        (json.dumps(measures(lstm=1.5, trigram=2.8)), 0, "| lstm | val | 2.0000 | 1.5000 | -25.00% | better |"),
        (json.dumps(measures(lstm=2.0)), 1, "trigram on test: gone"),
        (json.dumps(measures(lstm=None, trigram=2.8)), 1, "lstm on test: not finite"),
        ('{"lstm": {"test": {"bits_per_character": NaN}}, "trigram": {}}', 1, "lstm on test: not finite"),
        (json.dumps(measures(lstm=2.0, trigram=2.8, gru=2.2)), 0, "| gru | test | – | 2.2000 |  | new |"),
        ("{", 3, "metrics.json at HEAD: not JSON"),
        ("[]", 3, "not metrics of this pipeline"),
    ],
)
def test_two_commits_are_compared(content: str, code: int, said: str, run_stage: RunStage, repository: Path) -> None:
    put(repository, content)
    git(repository, "commit", "--quiet", "--all", "--message", "after", "--allow-empty")
    result = run_stage("compare", "HEAD~1", "HEAD")
    assert result.returncode == code, result.stderr
    assert said in result.stdout + result.stderr


def test_the_workspace_is_compared_by_default(run_stage: RunStage, repository: Path) -> None:
    put(repository, json.dumps(measures(lstm=3.0, trigram=2.8)))
    assert run_stage("compare", "main").returncode == 1
    (repository / MEASURES).unlink()
    assert run_stage("compare", "main").returncode == 3


def test_an_unknown_revision_is_named(run_stage: RunStage, repository: Path) -> None:  # noqa: ARG001
    result = run_stage("compare", "no-such-branch")
    assert result.returncode == 2
    assert "'no-such-branch': not a Git revision" in result.stderr


def test_a_model_that_was_always_infinite_is_no_news() -> None:
    changes = compare_metrics(measures(zero=None), measures(zero=None), ["test"], 0.02)
    assert [change.verdict for change in changes] == ["same"]
    assert failures(compare_metrics(measures(a=1), measures(), ["test"], 0), allow_missing=True) == []
