"""The scripts of ``tools/``, the benchmark of the page, and what ``make`` installs."""

import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import curves
import pytest
from ruamel.yaml import YAML

import compare
import verify
from smoke import ROOT, SMALL, change_params
from stages_by_hand import prepare, run_python, succeeded
from workspace import metrics

EQUAL = {"preprocess": {"a": "1"}, "train@x": {"b": "2", "c": "3"}}
CHANGED = {"train@x": {"b": "0", "c": "3"}, "preprocess": {"a": "9"}}
DIFFERING = ("preprocess: a", "train@x: b")


@pytest.mark.parametrize(
    ("results", "code", "printed"),
    [
        (metrics(lstm=2.1, trigram=2.8), 1, "WORSE lstm on val: 2.0 -> 2.1 (+5.00%)\nWORSE lstm on test: 2.0 -> 2.1 "),
        (metrics(lstm=2.04, trigram=2.8), 0, "lstm on val: 2.0 -> 2.04 (+2.00%)\n"),  # the tolerance itself
        (metrics(lstm=2.0), 1, "WORSE trigram on val: 2.8 -> None\n"),
        (metrics(lstm=None, trigram=2.8), 1, "WORSE lstm on val: 2.0 -> None\n"),
        (metrics(lstm=2.0, trigram=2.8, zero=None), 0, "Every model has the same bits per character as before.\n"),
    ],
)
def test_models_may_get_a_little_worse(
    results: Any, code: int, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, found = {"sha256": "8" * 64}, {"HEAD": metrics(lstm=2.0, trigram=2.8, zero=None), None: results}
    monkeypatch.setattr(compare, "read", lambda name, revision: corpus if "download" in name else found[revision])
    assert compare.main() == code
    assert capsys.readouterr().out.startswith(printed)


def write_lock(folder: Path, stages: dict[str, dict[str, str]]) -> None:
    outs = {name: {"outs": [{"path": path, "md5": md5} for path, md5 in of.items()]} for name, of in stages.items()}
    YAML().dump({"stages": outs}, folder / "dvc.lock")


@pytest.mark.parametrize(
    ("options", "runs", "code", "printed"),
    [
        ([], [EQUAL], 0, ["first run: 3 of 3 outputs are equal"]),
        ([], [CHANGED], 1, ["first run: 1 of 3 outputs are equal", *(f"first run: {each}" for each in DIFFERING)]),
        ([], [{"preprocess": {"a": "1"}}], 1, ["first run: 1 of 3 outputs are equal", "first run: train@x: b, c"]),
        (["--small"], [EQUAL, EQUAL], 0, [f"{run} run: 3 of 3 outputs are equal" for run in ("first", "second")]),
        (["--small"], [CHANGED, EQUAL], 1, [f"second run: {each}" for each in DIFFERING]),
        ([], [None], 255, []),
    ],
)
def test_every_output_that_differs_is_named(
    options: list[str], runs: list[Any], code: int, printed: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    write_lock(tmp_path, EQUAL)
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    waiting = iter(runs)

    def run_copy(folder: Path, changes: dict[str, Any], _: object) -> int:
        # The small settings, or those of params.yaml on no other corpus.
        assert changes == (SMALL if options else {"download.fallback": None})
        if (stages := next(waiting)) is None:
            return 255  # of a pipeline that fails
        folder.mkdir()
        write_lock(folder, stages)
        return 0

    monkeypatch.setattr(verify, "ROOT", tmp_path)
    monkeypatch.setattr(verify, "run_copy", run_copy)
    monkeypatch.setattr("sys.argv", ["verify.py", *options])
    with pytest.raises(SystemExit, match=str(code)):
        sys.exit(verify.main())
    assert capsys.readouterr().out.splitlines()[-len(printed) :] == printed or not printed
    assert next(waiting, None) is None


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
    changes: dict[str, str], variables: dict[str, str], changed: str, calls: list[str] | None, lines: list[str],
    code: int, tmp_path: Path,
) -> None:  # fmt: skip
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


WARM_UP = """
import runpy, sys
from seqlm.core.compiling import TolerantCache

wanted, load = set(), TolerantCache.load_overload

def noting(cache, signature, context):
    wanted.add((cache._name, signature))
    return load(cache, signature, context)

TolerantCache.load_overload = noting
runpy.run_path(sys.argv[1], run_name="__main__")
warmed = set(wanted)
from small_training import config, trained
for changes in ({}, {"model": "gru", "optimizer": "adamw"}, {"model": "lstm", "num_layers": 2, "dropout": 0.5}):
    trained(config(**changes, num_hiddens=32))
print(len(warmed), wanted - warmed)
"""


def test_after_a_warm_up_trainings_load_no_other_loops() -> None:
    number, missing = succeeded(run_python(WARM_UP, ROOT / "tools" / "warm_up.py")).split(maxsplit=1)
    assert (int(number) > 0, missing) == (True, "set()\n")


PINS = (ROOT / "requirements-hashed.txt").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_dependency_is_pinned_once_with_hashes() -> None:
    pins = re.findall(r"^([a-z0-9-]+)==\S+( ; .*)? \\\n    --hash=sha256:", PINS, flags=re.MULTILINE)
    names = {name for name, _ in pins}
    assert len(names) == len(pins) == len(re.findall("^[a-z]", PINS, flags=re.MULTILINE)) > 100
    extras = (PROJECT["optional-dependencies"][name] for name in ("pipeline", "subwords", "test", "torch"))
    wanted = [line for lines in (PROJECT["dependencies"], *extras) for line in lines]
    assert {re.split(r"[^\w.-]", line)[0].lower().replace(".", "-") for line in wanted} - {"seqlm"} <= names


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_moved_environment_is_made_again(tmp_path: Path) -> None:
    def needed(folder: Path) -> str:
        return subprocess.run(["make", "-n", "install"], cwd=folder, check=True, capture_output=True, text=True).stdout

    here, there = tmp_path / "here", tmp_path / "a folder, moved"
    (here / ".venv").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements-hashed.txt"):
        shutil.copy(ROOT / name, here)
    assert "-m venv  .venv" in needed(here)
    (here / ".venv" / "installed").write_text(f"{(here / '.venv').resolve()}\n")
    assert "venv" not in needed(here)
    here.rename(there)
    assert "-m venv --clear .venv" in needed(there)
    (there / ".venv" / "installed").write_text("")  # an older version's, of which nothing is known
    assert "venv" not in needed(there)


@pytest.mark.slow
def test_the_curves_have_rows_of_every_model_of_one_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLM_DATA_DIR", str(ROOT / "data"))
    monkeypatch.setattr(curves, "NETWORKS", {"lstm": {"num_epochs": 3}})
    corpus = curves.prepare(curves.CORPORA["time_machine"]._replace(file="sample.txt"), tmp_path)
    corpus.runs = {"lstm": {"model": "gru", "num_hiddens": 4, "batch_size": 4, "num_steps": 10}}
    rows = [row for _, rows in curves.data_rows(corpus, 5000, {*curves.COMPARED["data"]}) for row in rows]
    assert [row["model"] for row in rows] == [curves.CHARACTERS, curves.WORDS, "lstm", curves.MIXTURE]
    # Better than any of the characters, equally likely; the weights of the mixture are those that val likes best.
    assert all(0 < row["test_bits"] < math.log2(len(corpus.vocab)) for row in rows)
    *members, mixture = (row["val_bits"] for row in rows)
    assert mixture <= min(members)
