"""Runs that have settings, and leftovers of those that have none."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from seqlm.train.checkpoints import Checkpoint
from smoke import ROOT
from stages_by_hand import RunStage


@pytest.mark.parametrize("stage", ["train", "score"])
def test_the_runs_are_listed_if_one_is_unknown(stage: str, run_stage: RunStage) -> None:
    result = run_stage(stage, "--model", "nope")
    assert result.returncode == 3
    assert result.stderr == "error: data/configs: holds no run's settings: run the configure stage\n"
    assert run_stage("configure").returncode == 0
    result = run_stage(stage, "--model", "nope")
    assert result.returncode == 2
    names = "concise-random, concise-sequential, lstm, scratch-random, scratch-sequential"
    assert result.stderr == f"error: there is no run 'nope', only {names}\n"


@pytest.fixture
def clear_stale_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Layout], None]:
    """Return the function of the stage, as if DVC called it."""
    monkeypatch.setenv("DVC_STAGE", "download")
    monkeypatch.syspath_prepend(ROOT / "stages")
    import download

    return download.clear_stale_runs


def test_a_stale_run_goes_with_its_results_and_checkpoints(
    tmp_path: Path, clear_stale_runs: Callable[[Layout], None], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(tmp_path)
    layout.params.write_text("runs: {a: {token: char}}\n")
    for run in ("a", "gone"):
        Checkpoint(layout.checkpoints / run, "key").save({}, {})
        (layout.checkpoints / run / "lock").touch()
        (layout.reports("train") / run).mkdir(parents=True)
    clear_stale_runs(layout)
    assert [path.name for path in layout.checkpoints.iterdir()] == ["a"]
    assert [path.name for path in layout.reports("train").iterdir()] == ["a"]
    removed = layout.reports("train") / "gone", layout.checkpoints / "gone"
    assert capsys.readouterr().out == "".join(f"removed {path}: no such run is left\n" for path in removed)


@pytest.mark.parametrize("params", ["{}", "runs: {}", "runs: null", "runs: [a]"])
def test_wrong_runs_remove_nothing(params: str, tmp_path: Path, clear_stale_runs: Callable[[Layout], None]) -> None:
    layout = Layout(tmp_path)
    layout.params.write_text(params)
    Checkpoint(layout.checkpoints / "a", "key").save({}, {})
    clear_stale_runs(layout)
    assert (layout.checkpoints / "a").exists()


def test_make_clean_removes_checkpoints_and_no_results(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    kept, removed = tmp_path / "data/models", tmp_path / "checkpoints/a"
    for folder in (kept, removed):
        folder.mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert kept.exists()
    assert not removed.parent.exists()
