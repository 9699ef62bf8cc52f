"""Experiments with the real DVC: what they run, what they change, and the way back."""

from dataclasses import dataclass

import pytest

from workspace import Workspace, stages_run

MAX_COLUMNS = 160
CHANGES = ("train.lr=0.5", "+runs.mine={token: char, model: gru, sampling: sequential}")


@dataclass(frozen=True)
class Experiment:
    """An experiment with :data:`CHANGES`, up to the stage ``evaluate``, and the way back from it."""

    ran: list[str]
    changed_params: str
    """What Git says of params.yaml: lines added, lines removed, name."""
    metrics: str
    """Output of ``dvc metrics show``."""
    metrics_diff: str
    models: set[str]
    removal: str
    """What ``dvc exp run -S '~runs.mine'`` says."""
    lock_without: str
    """``dvc.lock`` after the run was removed."""
    ran_back: list[str]
    """The stages that ``git checkout . && dvc repro`` runs afterwards."""
    models_back: set[str]
    lock_back: str
    changed_back: str
    """What Git says of tracked files afterwards."""
    left: str
    """Files of results that neither Git nor DVC knows afterwards."""


@pytest.fixture(scope="module")
def experiment(workspace: Workspace) -> Experiment:
    settings = [word for change in CHANGES for word in ("--set-param", change)]
    ran = stages_run(workspace.run("dvc", "exp", "run", *settings, "evaluate").stdout)
    workspace.show_changed_settings()
    there = {
        "changed_params": workspace.git("diff", "--numstat", "params.yaml"),
        "metrics": workspace.run("dvc", "metrics", "show").stdout,
        "metrics_diff": workspace.run("dvc", "metrics", "diff").stdout,
        "models": set(workspace.metrics()),
        "removal": workspace.run("dvc", "exp", "run", "--set-param", "~runs.mine", "evaluate").stdout,
        "lock_without": (workspace.folder / "dvc.lock").read_text(),
    }
    workspace.git("checkout", "--quiet", ".")
    ran_back = stages_run(workspace.run("dvc", "repro").stdout)
    back = {
        "models_back": set(workspace.metrics()),
        "lock_back": (workspace.folder / "dvc.lock").read_text(),
        "changed_back": workspace.git("status", "--porcelain", "--untracked-files=no"),
        "left": workspace.git("ls-files", "--others", "--exclude-standard", "reports"),
    }
    workspace.restore()
    return Experiment(ran=ran, ran_back=ran_back, **there, **back)


@pytest.mark.slow
def test_an_experiment_runs_only_what_its_settings_affect(experiment: Experiment) -> None:
    # The run small-lstm has its own learning rate, and a new run costs one training and one scoring.
    runs = {"train@plain", "train@mine", "score@plain", "score@mine"}
    assert set(experiment.ran) == {"download", "configure", *runs, "evaluate"}


@pytest.mark.slow
def test_an_experiment_changes_only_the_lines_of_its_settings(experiment: Experiment) -> None:
    # One setting changes, and a name with three settings is added.
    assert experiment.changed_params.split() == [str(1 + 4), "1", "params.yaml"]


@pytest.mark.slow
def test_the_metrics_of_an_experiment_are_those_of_its_runs(experiment: Experiment) -> None:
    changed = [line.split()[:2] for line in experiment.metrics_diff.splitlines()]
    assert ["reports/score/plain/metrics.json", "test_perplexity"] in changed
    assert "small-lstm" not in experiment.metrics_diff
    for name in ("train", "score"):
        assert f"reports/{name}/mine/metrics.json " in experiment.metrics
        assert f"reports/{name}/mine/metrics.json " in experiment.metrics_diff
    for shown in (experiment.metrics, experiment.metrics_diff):
        assert max(map(len, shown.splitlines())) <= MAX_COLUMNS, shown


@pytest.mark.slow
def test_an_added_run_is_a_row_and_leaves_nothing_stale(experiment: Experiment) -> None:
    assert "mine" in experiment.models
    assert "mine" not in experiment.models_back
    assert "mine" not in experiment.lock_back


@pytest.mark.slow
def test_a_removed_run_leaves_nothing_in_the_lock(experiment: Experiment) -> None:
    assert "removed data/models/runs/mine: no such run is left" in experiment.removal
    assert "removed score@mine from dvc.lock" in experiment.removal
    assert "mine" not in experiment.lock_without


@pytest.mark.slow
def test_the_way_back_from_an_experiment_trains_and_scores_nothing(experiment: Experiment) -> None:
    # The stage evaluate removes what the added run left; everything else comes from the cache.
    assert set(experiment.ran_back) <= {"download", "evaluate"}
    assert experiment.changed_back == ""
    assert experiment.left == ""


@pytest.mark.slow
def test_own_text_needs_one_setting(clean: Workspace) -> None:
    (clean.folder / "my.txt").write_text("<b>bold</b> & the sea, the sea\n" * 400)
    clean.run("dvc", "exp", "run", "--set-param", "download.corpus=my.txt", "--set-param", "preprocess.normalise=none")
    page = (clean.folder / "reports/index.html").read_text()
    assert "my.txt" in page
    # The corpus is shown as text: its markup is escaped.
    assert "<b>bold" not in page


def test_a_wrong_setting_stops_an_experiment_before_anything_runs(clean: Workspace) -> None:
    result = clean.run("dvc", "exp", "run", "--set-param", "train.lr=.nan", "configure", check=False)
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "params.yaml: train.lr" in output
    assert "`make restore` goes back to the last commit" in output
