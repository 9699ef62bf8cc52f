"""Runs are trained side by side before `dvc repro`, by a stand-in for DVC that waits for its neighbour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smoke import ROOT, change_params
from stages_by_hand import prepare

DVC = """#!/bin/sh
echo "$@ with $LOCAL_WORLD_SIZE" >> calls
case "$*" in
*train@*)
  touch "started.$3"
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ "$(ls started.* | wc -l)" -gt 1 ] && echo trained && exit; sleep 0.5; done
  echo alone ;;
status*) echo "$CHANGED" ;;
*) exit $STOP ;;
esac
"""
TWO = '{"train@b": [], "train@a": []}'


@pytest.mark.parametrize(
    ("changes", "stop", "changed", "lines"),
    [
        ({}, 0, TWO, ["a: trained", "b: trained"]),
        ({}, 0, '{"train@a": []}', []),  # alone, it has all threads in `dvc repro`
        ({}, 0, "{}", []),
        ({}, 3, TWO, []),
        ({"launcher": "torchrun"}, 0, TWO, []),
        ({"device": "cuda"}, 0, TWO, []),
    ],
)
def test_two_changed_runs_train_side_by_side(
    changes: dict[str, str], stop: int, changed: str, lines: list[str], tmp_path: Path
) -> None:
    change_params(prepare(tmp_path) / "params.yaml", changes)
    (tmp_path / "dvc").write_text(DVC)
    (tmp_path / "dvc").chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "STOP": str(stop), "CHANGED": changed}
    variables.pop("LOCAL_WORLD_SIZE", None)
    command = [sys.executable, str(ROOT / "tools/train_ahead.py")]
    result = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60)
    assert (result.returncode, sorted(result.stdout.splitlines())) == (stop, lines), result.stderr
    calls = sorted(line for line in (tmp_path / "calls").read_text().splitlines() if "status" not in line)
    trained = [f"repro --single-item train@{run} with 2" for run in ("a", "b")] if lines else []
    assert calls == [*trained, "repro vocab ngrams sine with "]
