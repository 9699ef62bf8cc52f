"""``params.yaml`` has the format in which DVC writes it, so an experiment changes only the lines of its settings."""

import difflib
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides

from smoke import ROOT, SMALL, change_params


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
