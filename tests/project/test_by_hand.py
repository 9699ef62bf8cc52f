"""Stages run by hand: options write no tracked file, and only a stage under DVC removes stale runs."""

import re
import shutil
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from small_runs import write_models
from smoke import ROOT, change_params
from stages_by_hand import RunStage, succeeded

UNDER_DVC = {"DVC_STAGE": "a-stage"}


def test_options_of_generate_print_and_write_no_samples(run_stage: RunStage, tmp_path: Path) -> None:
    layout = write_models(tmp_path, "the quick brown fox jumps over the lazy dog traveller time\n" * 20)
    assert "small, temperature 1" in succeeded(run_stage("generate", "--model", "small", "--temperature", "1"))
    assert not layout.reports("generate").exists()


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
