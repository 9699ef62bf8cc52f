"""Changes of ``params.yaml``: DVC changes only the lines of a setting, and presets become one experiment."""

import difflib
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

import preset
from default_params import PARAMS_FILE
from seqlm.configure.settings import check_values
from seqlm.core.settings import read_params
from smoke import ROOT, SMALL, change_params
from workspace import Workspace, stages_run


def changed_lines(path: Path, override: str) -> list[str]:
    """Return the lines that an override adds (+) and removes (-)."""
    before = path.read_text().splitlines()
    apply_overrides(path, [override])
    diff = difflib.unified_diff(before, path.read_text().splitlines(), lineterm="", n=0)
    return [line for line in diff if not line.startswith(("+++", "---", "@@"))]


@pytest.fixture(params=["the project's own", "small"])
def params(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the settings, as they are or with small ones put over them."""
    path = tmp_path / "params.yaml"
    path.write_bytes((ROOT / "params.yaml").read_bytes())
    if request.param == "small":
        change_params(path, SMALL)
    return path


def test_settings_that_stay_leave_the_file_as_it_is(params: Path) -> None:
    assert changed_lines(params, "seed=0") == []


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.lr=0.5", "lr: 0.5 "),
        ("seed=-1", "seed: -1 "),
        ("train.model=lstm", "model: lstm "),
        ("download.fallback=null", "fallback: "),
        ("preprocess.split.train=0.7", "train: 0.7"),
        ("launcher=torchrun --standalone", "launcher: torchrun --standalone "),
    ],
)
def test_a_changed_setting_is_one_changed_line(override: str, value: str, params: Path) -> None:
    removed, added = changed_lines(params, override)
    assert (removed[0], added[0]) == ("-", "+")
    assert added[1:].lstrip().startswith(value)
    # Its comment stays.
    assert added.partition("#")[2] == removed.partition("#")[2]


def test_a_new_run_is_its_name_and_its_settings(params: Path) -> None:
    added = changed_lines(params, "+runs.mine={token: char, model: gru, lr: 0.1}")
    assert [line[1:].strip() for line in added] == ["mine:", "token: char", "model: gru", "lr: 0.1"]
    assert all(line.startswith("+") for line in added)


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
