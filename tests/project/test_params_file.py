"""Experiments: changes of ``params.yaml``, presets, wrong settings and the way back."""

from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

import preset
from default_params import PARAMS_FILE
from seqlm.core.settings import read_params
from seqlm.pipeline.configure.settings import resolve_runs
from workspace import Workspace, stages_run


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


@pytest.mark.slow
def test_an_experiment_and_the_way_back(clean: Workspace) -> None:
    options = [word for change in ("train.lr=0.5", "+runs.mine={token: char, model: gru}") for word in ("-S", change)]
    ran = stages_run(clean.run("dvc", "exp", "run", *options, "evaluate").stdout)
    # The run small-lstm has its own learning rate, and a new run costs one training and one scoring.
    assert set(ran) == {
        "download", "configure", "train@plain", "train@mine", "score@plain", "score@mine", "evaluate",
    }  # fmt: skip
    # One setting changes, and a name with two settings is added.
    assert clean.git("diff", "--numstat", "params.yaml").split() == [str(1 + 3), "1", "params.yaml"]
    # What changed, and the bits of what it changed, fit a terminal.
    shown = clean.run("dvc", "exp", "show", "--only-changed", "--drop", "test|params|runs|.*/").stdout
    difference = clean.run("dvc", "metrics", "diff").stdout
    assert {"val.plain", "val.mine", "train.lr"} <= set(shown.split())
    assert {"val.plain", "test.plain", "val.mine", "test.mine"} <= set(difference.split())
    for output in (shown, difference):
        assert "small-lstm" not in output
        assert max(map(len, output.splitlines())) <= 80, output
    assert "mine" in clean.metrics()

    removal = clean.run("dvc", "exp", "run", "--set-param", "~runs.mine", "evaluate").stdout
    assert "removed data/models/runs/mine: no such run is left" in removal
    assert "removed score@mine from dvc.lock" in removal
    assert "mine" not in (clean.folder / "dvc.lock").read_text()

    clean.git("checkout", "--quiet", ".")
    # The stage download removes what the added run left; everything else comes from the cache.
    assert set(stages_run(clean.run("dvc", "repro").stdout)) <= {"download", "evaluate"}
    assert "mine" not in clean.metrics()
    assert "mine" not in (clean.folder / "dvc.lock").read_text()
    assert clean.git("status", "--porcelain", "--untracked-files=no") == ""
    assert clean.git("ls-files", "--others", "--exclude-standard", "reports") == ""
