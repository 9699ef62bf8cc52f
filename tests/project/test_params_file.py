"""Experiments: presets, and changes of ``params.yaml`` that are refused before DVC starts."""

import subprocess
import sys
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

import preset
from default_params import PARAMS_FILE
from seqlm.core.settings import read_params
from seqlm.pipeline.configure.settings import resolve_runs
from smoke import ROOT
from stages_by_hand import refused


@pytest.mark.parametrize("first", preset.PRESETS)
@pytest.mark.parametrize("second", preset.PRESETS)
def test_the_settings_of_presets_are_accepted_one_after_another_and_together(
    first: str, second: str, tmp_path: Path
) -> None:
    # What is gone is not removed again, and what is there may be added again.
    for experiments in ([[first], [second]], [[first, second]]):
        params = tmp_path / "params.yaml"
        params.write_bytes(PARAMS_FILE.read_bytes())
        for names in experiments:
            apply_overrides(params, preset.settings(names, YAML(typ="safe", pure=True).load(params)))
        runs = resolve_runs(read_params(params), source=str(params))
        if second == "quick":
            assert runs["lstm"].token_budget == 1_000_000


@pytest.mark.parametrize(
    "name", ["a b.txt", "it's.txt", 'a"b.txt', "[x].txt", "(2).txt", "a,b.txt", "a=b.txt", "时.txt"]
)
def test_any_name_of_a_file_is_a_setting(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    (tmp_path / "params.yaml").write_text("download: {corpus: sample}\ntrain: {lr: 1.0}\n")
    assert preset.quoted("train.lr=0.5") == "train.lr=0.5"
    apply_overrides("params.yaml", [preset.quoted(f"download.corpus={name}")])
    assert YAML(typ="safe").load(tmp_path / "params.yaml")["download"] == {"corpus": name}


@pytest.mark.parametrize(
    ("change", "code", "complaint"),
    [
        ("train.lr=0,5", 1, "train.lr=0,5: a comma separates several values"),
        ("train.lrr=1", 1, "Could not override 'train.lrr'. Did you mean train.lr?"),
        ("train.lr=-1", 2, "params.yaml: train.lr = -1: should be greater than 0"),
        ("+runs.x={model: gru}", 2, "params.yaml: runs.x.token: missing"),
    ],
)
def test_changes_of_an_experiment_are_refused_before_dvc_starts(
    change: str, code: int, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "params.yaml").write_bytes(PARAMS_FILE.read_bytes())
    command = [sys.executable, str(ROOT / "tools" / "preset.py"), "quick", "-S", change]
    refused(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True), code, complaint)
