"""The gate: revisions of a real repository, by the names that DVC takes, compared within tolerances."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from seqlm.compare.comparison import BEST_IS_LAST, compare_metrics, failures
from seqlm.compare.settings import CompareParams
from smoke import ROOT, change_params
from stages_by_hand import Finished, RunStage, refused
from workspace import Repository, TinyRepository

METRICS, CORPUS = "reports/evaluate/metrics.json", "reports/download/summary.json"
BOOK = {"name": "time_machine", "requested": "time_machine", "fallback": False, "sha256": "8" * 64}
Compare = Callable[..., Finished]
SAMPLE = {"name": "sample", "requested": "time_machine", "fallback": True, "sha256": "2" * 64}


def metrics(**bits: float | None) -> dict[str, dict[str, dict[str, float | None]]]:
    return {model: {split: {"bits_per_character": value} for split in ("val", "test")} for model, value in bits.items()}


def put(folder: Path, results: object, corpus: object = BOOK) -> None:
    """Write results, a number for those of one model; a corpus that is None is not kept."""
    results = metrics(lstm=results) if isinstance(results, float) else results
    for name, value in ((METRICS, results), (CORPUS, corpus)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    if corpus is None:
        (folder / CORPUS).unlink()


def commit(repository: Repository, results: object, corpus: object = BOOK) -> str:
    put(repository.folder, results, corpus)
    repository.git("add", "--all", "reports")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "results")
    return repository.git("rev-parse", "HEAD")


def test_every_split_of_the_metrics_can_be_compared() -> None:
    splits = {split for scores in json.loads((ROOT / METRICS).read_text()).values() for split in scores}
    assert {"train_subset", "test"} < splits
    CompareParams(tolerance=0.0, splits=sorted(splits), allow_missing=False, allow_other_corpus=False)


@pytest.fixture
def repository(run_stage: RunStage, tmp_path: Path) -> Repository:  # noqa: ARG001 - it writes params.yaml
    found = Repository(tmp_path)
    found.git("init", "--quiet", "--initial-branch=main")
    return found


@pytest.fixture
def compare(run_stage: RunStage, repository: Repository) -> Compare:  # noqa: ARG001 - a repository
    """Compares revisions, and checks the exit code, that an error has one line, and a part of what is printed."""

    def run(*revisions: str, code: int = 0, prints: str = "") -> Finished:
        result = run_stage("compare", *revisions)
        assert result.returncode == code, result.stderr
        assert code == 1 or result.stderr.count("\n") == (code > 1)  # worse values have a line each
        assert prints in result.stdout + result.stderr
        return result

    return run


@pytest.mark.parametrize(
    ("content", "code", "printed"),
    [
        (metrics(lstm=2.1, trigram=2.8), 1, "| 2.0000 → 2.1000, +5.00%, worse | 2.0000 → 2.1000, +5.00%, worse |"),
        (metrics(lstm=2.02, trigram=2.8), 0, "4 of 4 values are the same"),
        (metrics(lstm=1.5, trigram=2.8), 0, "| lstm | 2.0000 → 1.5000, -25.00%, better |"),
        (metrics(lstm=2.0), 1, "trigram on test: gone; compare.allow_missing: true accepts that"),
        (metrics(lstm=None, trigram=2.8), 1, "lstm on test: not finite"),
        ('{"lstm": {"test": {"bits_per_character": NaN}}, "trigram": {}}', 1, "lstm on test: not finite"),
        (metrics(lstm=2.0, trigram=2.8, gru=2.2), 0, "| gru | – → 2.2000, new | – → 2.2000, new |"),
        ("{", 3, "metrics.json at HEAD: not JSON"),
    ],
)
def test_commits_are_compared(
    content: object, code: int, printed: str, compare: Compare, repository: Repository
) -> None:
    commit(repository, metrics(lstm=2.0, trigram=2.8))
    commit(repository, content)
    compare("HEAD~1", "HEAD", code=code, prints=printed)


def test_a_model_that_was_always_infinite_is_no_news() -> None:
    changes = compare_metrics(metrics(zero=None), metrics(zero=None), ["test"], 0.02)
    assert [change.verdict for change in changes] == ["same"]
    assert failures(compare_metrics(metrics(a=1), metrics(), ["test"], 0), allow_missing=True) == []


def test_a_run_whose_last_epoch_is_the_best_one_has_no_other_row() -> None:
    before = metrics(**{"rnn": 5.4, "rnn@best": 3.4, "gru": 2.5, "gru@best": 2.4})
    changes = compare_metrics(before, metrics(rnn=3.5), ["test"], 0.02)
    verdicts = {change.model: change.verdict for change in changes}
    assert verdicts == {"rnn": "better", "rnn@best": BEST_IS_LAST, "gru": "gone", "gru@best": "gone"}
    assert [change.model for change in failures(changes, allow_missing=False)] == ["gru", "gru@best"]


def test_without_names_the_workspace_is_compared_with_its_commit(compare: Compare, repository: Repository) -> None:
    commit(repository, 2.0)
    put(repository.folder, 2.5)
    compare(code=1, prints="| lstm | 2.0000 → 2.5000, +25.00%, worse |")


@pytest.mark.parametrize(
    ("before", "after", "code", "printed"),
    [
        (BOOK, BOOK, 0, "One corpus: time_machine (SHA-256 88888888)."),
        (BOOK, SAMPLE, 1, "after sample (SHA-256 22222222), in place of time_machine."),
        # Equal texts are one corpus: the fallback, and the same text by its own name.
        (SAMPLE, SAMPLE | {"requested": "sample", "fallback": False}, 0, "One corpus: sample (SHA-256 22222222)."),
        (None, BOOK, 0, "is not known: before not kept, after time_machine (SHA-256 88888888)."),
    ],
)
def test_corpora_are_compared(
    before: object, after: object, code: int, printed: str, compare: Compare, repository: Repository
) -> None:
    commit(repository, 2.0, before)
    put(repository.folder, 2.0, after)
    result = compare("HEAD", code=code, prints=printed)
    assert ("values are the same" in result.stdout) == (code == 0)
    assert result.stderr.count("\n") == (code != 0)


def test_models_of_other_corpora_are_compared_on_demand(compare: Compare, repository: Repository) -> None:
    commit(repository, 2.0)
    put(repository.folder, 2.0, SAMPLE)
    change_params(repository.folder / "params.yaml", {"compare.allow_other_corpus": True})
    result = compare("HEAD", prints="2 of 2 values are the same")
    assert result.stdout.startswith("Other corpora: before time_machine")


PIPELINE = f"""
stages:
  evaluate:
    cmd: python write.py
    params: [bits]
    metrics: [{{{METRICS}: {{cache: false}}}}]
"""
WRITE = f"""
import json, pathlib, re
bits = float(re.search("^bits: (.*)", pathlib.Path("params.yaml").read_text(), re.MULTILINE)[1])
path = pathlib.Path("{METRICS}")
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps({{"lstm": {{split: {{"bits_per_character": bits}} for split in ("val", "test")}}}}))
"""


@pytest.mark.slow
def test_splits_without_values_are_no_success(compare: Compare, repository: Repository) -> None:
    commit(repository, 2.0)
    change_params(repository.folder / "params.yaml", {"compare.splits": ["train_subset"]})
    refused(compare("HEAD", "workspace", code=3), 3, "neither revision has values on train_subset")


@pytest.mark.slow
def test_what_dvc_calls_an_experiment_is_found(compare: Compare, repository: Repository) -> None:
    params = (repository.folder / "params.yaml").read_text() + "bits: 2.0\n"
    files = {"dvc.yaml": PIPELINE, "write.py": WRITE, "params.yaml": params}
    made = TinyRepository.make(repository.folder, files)
    made.run("dvc", "exp", "run", "--name", "half-lr", "--set-param", "bits=2.5")
    made.git("checkout", "--quiet", ".")
    assert "2.5" in made.run("dvc", "metrics", "diff", "main", "half-lr").stdout
    compare("main", "half-lr", code=1, prints="| 2.0000 → 2.5000, +25.00%, worse |")
    compare("no-such-branch", code=2, prints="unknown Git revision 'no-such-branch': see git log, dvc exp list")
