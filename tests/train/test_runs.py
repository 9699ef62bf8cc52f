"""Runs that have settings, and leftovers of those that have none."""

import subprocess
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.settings import remove_stale_runs, run_names
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


def test_stale_runs_are_removed_and_the_others_stay(tmp_path: Path) -> None:
    for name in ("configs/a.json", "runs/a/weights", "runs/gone/weights", "histories/gone/h", "histories/a/h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = run_names(tmp_path / "configs")
    removed = remove_stale_runs(names, tmp_path / "runs", tmp_path / "histories", tmp_path / "missing")
    assert [path.relative_to(tmp_path).as_posix() for path in removed] == ["runs/gone", "histories/gone"]
    assert (tmp_path / "runs/a/weights").exists()


def test_a_stale_run_goes_with_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DVC_STAGE", "evaluate")
    monkeypatch.syspath_prepend(ROOT / "stages")
    from harness import clear_stale_runs

    layout = Layout(tmp_path)
    for run in ("a", "gone"):
        Checkpoint(layout.checkpoints / run, "key").save({}, {})
        (layout.checkpoints / run / "lock").touch()
    clear_stale_runs(layout, ["a"])
    assert [path.name for path in layout.checkpoints.iterdir()] == ["a"]
    assert capsys.readouterr().out == f"removed {layout.checkpoints / 'gone'}: no such run is left\n"


def test_make_clean_removes_checkpoints_and_no_results(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    kept, removed = tmp_path / "data/models", tmp_path / "checkpoints/a"
    for folder in (kept, removed):
        folder.mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert kept.exists()
    assert not removed.parent.exists()
