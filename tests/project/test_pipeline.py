"""The real pipeline, by the real DVC, on the sample corpus with small settings."""

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from declarations import require_declared_files, require_declared_settings
from seqlm.core.files import sha256_of_file
from smoke import SMALL
from workspace import Workspace, finished, stages_run

# Columns of a terminal that tables of metrics must fit into.
MAX_WIDTH = 160


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace in which the pipeline ran once."""
    workspace = finished(tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; whatever a test changed is undone."""
    yield workspace
    workspace.restore()


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
    return tried(workspace, "+runs.mine={model: gru, sampling: sequential}")


def test_one_command_makes_every_artefact(workspace: Workspace) -> None:
    measures = workspace.measures()
    assert {"plain", "small-lstm", "char-uniform", "char-kneser-ney-3", "word-laplace-2"} <= set(measures)
    assert {"small-lstm+dynamic", "small-lstm+dynamic+char-kneser-ney-3"} <= set(measures)
    # Uniform over V tokens has perplexity V, whatever the text.
    assert measures["char-uniform"]["test"]["perplexity"] == pytest.approx(27 + 1)
    assert "fitted" in measures["plain"]
    assert "fitted" not in measures["char-kneser-ney-3"]
    page = (workspace.folder / "reports/index.html").read_text()
    assert "Parity does not apply" in page
    assert "plain" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert (workspace.folder / "reports/generate/samples.md").read_text().count("## ") == 2 + 4


def test_a_second_run_looks_for_the_corpus_and_changes_nothing(clean: Workspace) -> None:
    assert stages_run(clean.run("dvc", "repro").stdout) == ["download"]
    assert clean.run("git", "status", "--porcelain").stdout == ""


def test_everything_again_gives_the_same_bytes(clean: Workspace) -> None:
    clean.run("dvc", "repro", "--force")
    assert clean.run("git", "status", "--porcelain").stdout == ""


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
    # Below the runs: its name and its two settings.
    assert added_run.changed_params.split() == ["3", "0", "params.yaml"]


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


def would_run(workspace: Workspace) -> set[str]:
    """Return the stages that DVC says are changed, but for the one that looks for the corpus each time."""
    changed = json.loads(workspace.run("dvc", "status", "--json").stdout)
    return set(changed) - {"download"}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("evaluate/mixtures.py", {"evaluate", "report"}),
        ("report/figures/style.py", {"report"}),
        ("report/page.py", {"report"}),
    ],
)
def test_a_changed_module_concerns_its_stage_and_what_follows(module: str, stages: set[str], clean: Workspace) -> None:
    assert would_run(clean) == set()
    path = clean.folder / "src/seqlm" / module
    path.write_text(path.read_text() + "# touched\n")
    changed = would_run(clean)
    assert module.partition("/")[0] in changed
    assert changed <= stages


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


@pytest.mark.slow
def test_killed_pipelines_go_on_to_the_same_hashes(clean: Workspace) -> None:
    clean.update_params({"train.num_epochs": 3000, "train.checkpoint_s": 0.1, "train.sample_every": 0})
    clean.run("dvc", "repro", "train@plain")
    weights = clean.folder / "data/models/runs/plain/weights.safetensors"
    undisturbed, rng = sha256_of_file(weights), np.random.default_rng(0)
    clean.update_params({"train.eval_every": 3000})  # another run of the same arithmetic
    for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        process = clean.start("dvc", "repro", "train@plain")
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not list((clean.folder / "checkpoints").glob("plain-*.checkpoint")):
            time.sleep(0.05)
        time.sleep(float(rng.uniform(0, 0.5)))
        assert process.poll() is None, "the training ended before it could be killed"
        process.send_signal(stop)
        process.wait(timeout=60)
    result = clean.run("dvc", "repro", "train@plain")
    assert "going on after epoch" in result.stdout
    assert sha256_of_file(weights) == undisturbed
    assert [path.suffix for path in (clean.folder / "checkpoints").glob("plain*")] == [".lock"]


def test_stages_open_what_they_declare_and_nothing_else(workspace: Workspace) -> None:
    require_declared_files(workspace)


def test_stages_read_the_settings_that_they_declare_and_no_others(clean: Workspace) -> None:
    require_declared_settings(clean)
