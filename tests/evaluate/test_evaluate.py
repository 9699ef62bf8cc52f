"""The evaluate stage by hand, after scores changed or were left behind."""

import shutil
from pathlib import Path

import pytest

from seqlm.core.files import read_csv, write_csv, write_json
from seqlm.core.layout import Layout
from seqlm.vocab.kinds import KINDS
from small_runs import write_models
from smoke import ROOT, change_params
from stages_by_hand import RunStage, in_this_process, prepare, refused, succeeded

SETTINGS = {"score.dynamic.lrs": [0.001], "score.dynamic.decays": [0.01], "score.dynamic_counts": None}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A folder in which all models were scored, and the run ``small`` dynamically too."""
    layout = write_models(prepare(tmp_path_factory.mktemp("scored")))
    run_stage = in_this_process(layout.root)
    change_params(layout.params, SETTINGS)
    for arguments in (("--model", "small"), *(("--kind", kind) for kind in KINDS)):
        succeeded(run_stage("score", *arguments))
    history = read_csv(Layout(ROOT).reports("train", "lstm", "history.csv")).assign(run="small")
    write_csv(layout.reports("train", "small", "history.csv"), history)
    write_json(layout.reports("train", "small", "summary.json"), {})
    return layout


@pytest.fixture
def layout(scored: Layout, tmp_path: Path) -> Layout:
    shutil.copytree(scored.root, tmp_path, dirs_exist_ok=True)
    return Layout(tmp_path)


@pytest.fixture
def run_stage(layout: Layout) -> RunStage:
    return in_this_process(layout.root)


def models(layout: Layout) -> set[str]:
    return set(read_csv(layout.reports("evaluate", "table.csv"))["model"])


def test_a_dynamic_model_that_is_no_longer_scored_is_gone(layout: Layout, run_stage: RunStage) -> None:
    assert succeeded(run_stage("evaluate")).startswith("the best of ")
    assert "small+dynamic" in models(layout)
    change_params(layout.params, {"score.dynamic": None})
    succeeded(run_stage("score", "--model", "small"))
    succeeded(run_stage("evaluate"))
    assert models(layout) >= {"small", "char-kneser-ney-3"}
    assert not any("dynamic" in model for model in models(layout))


def test_the_history_of_a_killed_training_is_refused(layout: Layout, run_stage: RunStage) -> None:
    layout.reports("train", "small", "summary.json").unlink()
    layout.reports("train", "small", "history.csv").write_text("run,epoch\nsmall,1\n")
    complaint = "error: reports/train/small/summary.json: no such file: run the stage that writes it\n"
    refused(run_stage("evaluate"), 3, complaint)
    assert not layout.reports("evaluate").exists()
