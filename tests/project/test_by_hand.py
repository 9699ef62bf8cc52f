"""Stages by hand: without what they need, in an experiment, on other systems, and what their scripts import."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from smoke import ROOT, change_params
from stages_by_hand import RunStage, in_this_process, prepare, run_python, succeeded
from workspace import Repository

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


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_letters_that_the_terminal_lacks_become_escapes(encoding: str, tmp_path: Path) -> None:
    change_params(prepare(tmp_path) / "params.yaml", {"download.corpus": "время.txt"})
    (tmp_path / "время.txt").write_text("время идёт\n" * 20, encoding="utf-8")
    command = [sys.executable, ROOT / "stages" / "download.py", "--root", tmp_path]
    variables = os.environ | {"PYTHONIOENCODING": f"{encoding}:strict", "PYTHONUTF8": "0"}
    printed = succeeded(subprocess.run(command, env=variables, capture_output=True, text=True))
    # The second letter is U+0440.
    assert ("время" if encoding == "utf-8" else "\\u0440") in printed


def test_a_clone_keeps_line_ends_whatever_git_is_set_to() -> None:
    # data/corpora.yaml and dvc.lock hold hashes of the bytes, and Git for Windows would change them by default.
    said = Repository(ROOT).run("git", "check-attr", "eol", "--", "data/sample.txt", "data/corpora.yaml").stdout
    assert said.splitlines() == ["data/sample.txt: eol: lf", "data/corpora.yaml: eol: lf"]


# Their stages train networks. To score and generate, only a network of the framework needs it, which is loaded last.
NEEDS_TORCH = {"environment", "train", "gradients", "sine"}
IMPORTING = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    assert 'torch' not in sys.modules, name
"""


@pytest.mark.slow
def test_only_stages_that_need_pytorch_import_it() -> None:
    scripts = [path for path in (ROOT / "stages").glob("*.py") if path.stem not in NEEDS_TORCH]
    names = {name for path in scripts for name in re.findall(r"^ *from (seqlm\.\S+) import", path.read_text(), re.M)}
    succeeded(run_python(IMPORTING, *names))
