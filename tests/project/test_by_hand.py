"""Stages run by hand, without what they need, and in an experiment."""

import re
import shutil
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from smoke import ROOT, change_params
from stages_by_hand import RunStage, in_this_process, prepare

UNDER_DVC = {"DVC_STAGE": "a-stage"}


@pytest.mark.parametrize(
    ("environment", "corpus", "code", "stays"),
    [({}, "sample", 0, True), (UNDER_DVC, "sample", 0, False), (UNDER_DVC, "missing.txt", 2, True)],
    ids=["by hand", "under DVC", "without the corpus"],
)
def test_only_a_download_that_works_under_dvc_removes_stale_runs(
    environment: dict[str, str], corpus: str, code: int, stays: bool, run_stage: RunStage, tmp_path: Path
) -> None:
    layout = Layout(tmp_path)
    change_params(layout.params, {"download.corpus": corpus})
    for run in ("stale", "lstm"):
        layout.run(run).mkdir(parents=True)
    assert run_stage("download", **environment).returncode == code
    assert (layout.run("stale").exists(), layout.run("lstm").exists()) == (stays, True)


@pytest.mark.parametrize("stage", ["evaluate", "generate", "report"])
def test_without_any_config_a_stage_fails(stage: str, run_stage: RunStage, tmp_path: Path) -> None:
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    missing = run_stage(stage, **UNDER_DVC)
    Layout(tmp_path).configs.mkdir(parents=True)
    for result in (missing, run_stage(stage, **UNDER_DVC)):
        assert result.returncode == 3, result.stderr
        assert re.fullmatch("error: .*\n", result.stderr)  # the way back is named after experiments only


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("workspace", "`make restore` goes back to the last commit"),
        # Where `dvc exp run --temp` works: the settings of the workspace are as they were.
        (".dvc/tmp/exps/tmp1", "ran in a copy of what Git tracks: name other files"),
    ],
)
def test_a_wrong_setting_of_an_experiment_names_the_way_back(folder: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    run_stage = in_this_process(prepare(tmp_path / folder))
    change_params(tmp_path / folder / "params.yaml", {"train.lr": -1})
    complaint, advice = run_stage("configure", DVC_EXP_BASELINE_REV="0").stderr.splitlines()
    assert complaint.startswith("error: params.yaml: train.lr")
    assert expected in advice
