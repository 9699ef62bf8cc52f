"""Experiments with the real DVC: what they run, what they change, and the way back."""

from dataclasses import dataclass

import pytest

from workspace import Workspace, stages_run

# Columns of a terminal that tables of metrics must fit into.
MAX_WIDTH = 160


@dataclass(frozen=True)
class Experiment:
    """What an experiment with one changed setting did, and the way back from it."""

    ran: list[str]
    changed_params: str
    """What Git says of params.yaml."""
    metrics: str
    """What ``dvc metrics show`` prints."""
    metrics_diff: str
    models: set[str]
    page: str
    ran_back: list[str]
    """The stages that ``git checkout . && dvc repro`` runs afterwards."""
    models_back: set[str]
    lock_back: str
    changed_back: str
    """What Git says of the files that it knows, afterwards."""
    left: list[str]
    """Files of results that Git and DVC know nothing of, afterwards."""


def tried(workspace: Workspace, setting: str) -> Experiment:
    """Run an experiment and go back."""
    ran = stages_run(workspace.run("dvc", "exp", "run", "--set-param", setting).stdout)
    workspace.show_changed_settings()
    there = {
        "changed_params": workspace.run("git", "diff", "--numstat", "params.yaml").stdout,
        "metrics": workspace.run("dvc", "metrics", "show").stdout,
        "metrics_diff": workspace.run("dvc", "metrics", "diff").stdout,
        "models": set(workspace.measures()),
        "page": (workspace.folder / "reports/index.html").read_text(),
    }
    workspace.run("git", "checkout", "--quiet", ".")
    ran_back = stages_run(workspace.run("dvc", "repro").stdout)
    back = {
        "models_back": set(workspace.measures()),
        "lock_back": (workspace.folder / "dvc.lock").read_text(),
        "changed_back": workspace.run("git", "status", "--porcelain", "--untracked-files=no").stdout,
        "left": workspace.run("git", "ls-files", "--others", "--exclude-standard", "reports").stdout.split(),
    }
    workspace.restore()
    return Experiment(ran=ran, ran_back=ran_back, **there, **back)


@pytest.fixture(scope="module")
def other_rate(workspace: Workspace) -> Experiment:
    return tried(workspace, "train.lr=0.5")


@pytest.fixture(scope="module")
def added_run(workspace: Workspace) -> Experiment:
    return tried(workspace, "+runs.mine={token: char, model: gru, sampling: sequential}")


def test_a_changed_setting_retrains_the_runs_that_it_concerns(other_rate: Experiment) -> None:
    assert "train@plain" in other_rate.ran
    assert "score@plain" in other_rate.ran
    assert "train@small-lstm" not in other_rate.ran
    assert "score@small-lstm" not in other_rate.ran
    changed = [line.split()[:2] for line in other_rate.metrics_diff.splitlines()]
    assert ["reports/score/plain/metrics.json", "test_perplexity"] in changed
    assert "small-lstm" not in other_rate.metrics_diff


def test_an_experiment_changes_one_line_of_the_settings(other_rate: Experiment, added_run: Experiment) -> None:
    assert other_rate.changed_params.split() == ["1", "1", "params.yaml"]  # added, removed
    # Below the runs: its name and its three settings.
    assert added_run.changed_params.split() == ["4", "0", "params.yaml"]


def test_the_way_back_from_an_experiment_runs_nothing(other_rate: Experiment) -> None:
    assert other_rate.ran_back == ["download"]
    assert other_rate.changed_back == ""
    assert other_rate.left == []


def test_an_added_run_is_a_row_and_leaves_no_ghost(added_run: Experiment) -> None:
    assert "mine" in added_run.models
    assert "mine" in added_run.page
    for name in ("train", "score"):
        assert f"reports/{name}/mine/metrics.json " in added_run.metrics
        assert f"reports/{name}/mine/metrics.json " in added_run.metrics_diff
    assert {"train@mine", "score@mine"} <= set(added_run.ran)
    # What the other models made of the text stays: one new row costs one training and one scoring.
    assert not {"train@plain", "score@plain", "score-ngrams@char", "gradients"} & set(added_run.ran)
    assert "mine" not in added_run.models_back
    assert "mine" not in added_run.lock_back
    assert added_run.changed_back == ""
    assert added_run.left == []


def test_metrics_fit_a_terminal(other_rate: Experiment, added_run: Experiment) -> None:
    for shown in (other_rate.metrics, other_rate.metrics_diff, added_run.metrics, added_run.metrics_diff):
        assert max(map(len, shown.splitlines())) <= MAX_WIDTH, shown


@pytest.mark.slow
def test_own_text_needs_one_setting(clean: Workspace) -> None:
    (clean.folder / "my.txt").write_text("<b>bold</b> & the sea, the sea\n" * 400)
    clean.run("dvc", "exp", "run", "--set-param", "download.corpus=my.txt", "--set-param", "preprocess.normalise=none")
    page = (clean.folder / "reports/index.html").read_text()
    assert "my.txt" in page
    # The corpus is shown as text: its markup never becomes the page's.
    assert "<b>bold" not in page


@pytest.mark.parametrize("change", ["seed=-1", "train.lr=.nan", "train.model=rrn", "+evaluate.mixture=true", "+xyz=1"])
def test_a_bad_setting_stops_before_anything_runs(change: str, clean: Workspace) -> None:
    result = clean.run("dvc", "exp", "run", "--set-param", change, "configure", check=False)
    assert result.returncode != 0
    said = result.stdout + result.stderr
    assert f"params.yaml: {change.lstrip('+').partition('=')[0]}" in said
    assert "`make restore` goes back to the last commit" in said
