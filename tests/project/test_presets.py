"""Presets are settings that DVC and `configure` accept, and `tools/preset.py` runs them as one experiment."""

from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

import preset
from default_params import PARAMS_FILE
from seqlm.configure.settings import check_values
from seqlm.core.settings import read_params
from workspace import Workspace, stages_run


@pytest.mark.parametrize("name", preset.names())
def test_the_settings_of_a_preset_are_accepted(name: str, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_bytes(PARAMS_FILE.read_bytes())
    apply_overrides(params, list(preset.overrides(name, YAML(typ="safe", pure=True).load(params))))
    check_values(read_params(params), source=str(params))
    assert len(preset.description(name)) > 20


def test_what_is_gone_is_not_removed_again() -> None:
    left = list(preset.overrides("quick", {"runs": {"scratch-random": {}, "lstm": {}}}))
    assert [override for override in left if override.startswith("~")] == ["~runs.scratch-random"]


def test_values_are_written_as_hydra_reads_them(tmp_path: Path) -> None:
    values = {"text": "it's, {a: b} \\n", "word": "none", "quoted": "null", "none": None, "yes": True, "rate": 1e-5}
    values |= {"list": ["a b", 1], "number": "1e5"}
    params = tmp_path / "params.yaml"
    params.write_text("".join(f"{key}: 0\n" for key in values))
    apply_overrides(params, [f"{key}={preset.written(value)}" for key, value in values.items()])
    apply_overrides(params, [f"+map={preset.written({'x': 0.5})}"])
    assert YAML(typ="safe", pure=True).load(params) == values | {"map": {"x": 0.5}}


def test_without_a_known_preset_the_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert preset.main([]) == 0
    assert preset.main(["tiny-shakespeare"]) == 2
    assert capsys.readouterr().out.count("tiny_shakespeare  Tiny Shakespeare as raw text") == 2


@pytest.mark.slow
def test_presets_and_options_become_one_experiment(clean: Workspace) -> None:
    options = ["-S", "train.lr=0.25", "configure"]
    said = clean.run("python", "tools/preset.py", "raw_text", "gpu", *options).stdout
    assert "-S preprocess.normalise=none" in said
    assert "configure" in stages_run(said)
    params = YAML(typ="safe", pure=True).load(clean.folder / "params.yaml")
    assert (params["device"], params["preprocess"]["normalise"], params["train"]["lr"]) == ("cuda", "none", 0.25)
