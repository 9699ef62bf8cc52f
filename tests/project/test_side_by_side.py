"""Stages run side by side before `dvc repro`, by a stand-in for DVC that waits for its neighbour."""

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
*--single-item*)
  touch "started.$3"
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ "$(ls started.* | wc -l)" -gt 1 ] && echo done && exit $FAIL; sleep 0.5; done
  echo alone ;;
status*) echo "$CHANGED" ;;
*) exit $STOP ;;
esac
"""
TWO = '{"score@b": [], "train@a": [], "score@a": []}'
ALL = '{"train@b": [], "train@char": [], "ngrams@char": [], "sine": [], "gradients": []}'
RUNS = ["repro --single-item train@a score@a with 2", "repro --single-item train@b score@b with 2"]


@pytest.mark.parametrize(
    ("changes", "variables", "changed", "calls", "lines", "code"),
    [
        ({}, {}, TWO, RUNS, ["a: done", "b: done"], 0),
        ({}, {}, '{"train@a": []}', [], [], 0),  # alone, it has all threads in `dvc repro`
        ({}, {}, "{}", [], [], 0),
        ({}, {"STOP": "3"}, TWO, [], [], 3),
        # Two were started at once, and no third one after the first failure.
        ({}, {"FAIL": "4"}, ALL, None, ["b: done", "char: done"], 4),
        ({"launcher": "torchrun"}, {}, TWO, [], [], 0),
        ({"device": "cuda"}, {}, TWO, [], [], 0),
    ],
)
def test_two_chains_of_changed_stages_run_side_by_side(
    changes: dict[str, str],
    variables: dict[str, str],
    changed: str,
    calls: list[str] | None,
    lines: list[str],
    code: int,
    tmp_path: Path,
) -> None:
    change_params(prepare(tmp_path) / "params.yaml", changes)
    (tmp_path / "dvc").write_text(DVC)
    (tmp_path / "dvc").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "STOP": "0", "FAIL": "0", "CHANGED": changed} | variables
    environment.pop("LOCAL_WORLD_SIZE", None)
    command = [sys.executable, str(ROOT / "tools/side_by_side.py")]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (result.returncode, sorted(result.stdout.splitlines())) == (code, lines), result.stderr
    made = [line for line in (tmp_path / "calls").read_text().splitlines() if "status" not in line]
    assert made[0] == "repro vocab with "
    assert calls is None or sorted(made[1:]) == calls
