"""Runs that have settings, and leftovers of those that have none."""

from pathlib import Path

from seqlm.train.runs import remove_stale_runs, run_names


def test_stale_runs_are_removed_and_the_others_stay(tmp_path: Path) -> None:
    for name in ("configs/a.json", "runs/a/weights", "runs/gone/weights", "histories/gone/h", "histories/a/h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = run_names(tmp_path / "configs")
    removed = remove_stale_runs(names, tmp_path / "runs", tmp_path / "histories", tmp_path / "missing")
    assert [path.relative_to(tmp_path).as_posix() for path in removed] == ["runs/gone", "histories/gone"]
    assert (tmp_path / "runs/a/weights").exists()
