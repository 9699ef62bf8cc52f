"""The configure stage: it checks every setting of every section and resolves each run."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from default_params import PARAMS_FILE
from seqlm.configure.settings import check_values
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from smoke import ROOT
from stages_by_hand import RunStage

PARAMS = read_params(PARAMS_FILE)
WRONG = [{"a": "mapping"}, float("nan"), float("inf"), 10**30, "\x00" * 10_001]
# Settings that must be positive integers or numbers, or seeds.
NUMBERS = {"seed", "num_threads", "lr", "num_epochs", "batch_size", "tau"}
NOT_NUMBERS = [-1, True, "1", None, [1]]


def leaves(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all settings."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, str(key)))]
    return [path]


def changed(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return the settings with one of them set to ``value``, or without it if that is Ellipsis."""
    params = copy.deepcopy(PARAMS)
    section: Any = params
    for key in path[:-1]:
        section = section[key]
    if value is ...:
        del section[path[-1]]
    else:
        section[path[-1]] = value
    return params


def refusal(params: dict[str, Any]) -> str:
    """Return the message with which settings are refused; empty if they are accepted."""
    try:
        check_values(params, source="params.yaml")
    except ParamsError as error:
        return str(error)
    return ""


def test_each_run_gets_its_own_config_file(run_stage: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    (tmp_path / "data/configs/gone.json").write_text("{}")
    result = run_stage("configure")
    assert result.returncode == 0, result.stderr
    files = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "data/configs").iterdir()}
    assert set(files) == set(PARAMS["runs"])
    assert files["scratch-random"]["sampling"] == "random"
    assert files["scratch-random"]["lr"] == PARAMS["train"]["lr"] != files["lstm"]["lr"]
    assert files["lstm"]["seed"] == PARAMS["seed"]


@pytest.mark.parametrize("path", leaves(PARAMS), ids=".".join)
def test_a_setting_refuses_every_wrong_value(path: tuple[str, ...]) -> None:
    values = WRONG + (NOT_NUMBERS if path[-1] in NUMBERS else [])
    messages = {repr(value)[:40]: refusal(changed(path, value)) for value in values}
    assert {value: message for value, message in messages.items() if path[0] not in message or "\n" in message} == {}, (
        "accepted, or not refused in one line that names the section"
    )
    neighbour = refusal(changed((*path[:-1], "no_such_setting"), 1))
    assert re.search("unknown setting|must be a mapping|valid dictionary|should be", neighbour)
    # Any run may leave out any setting, and models of a part of train are for some kinds of token only.
    may_be_missing = path[0] == "runs" or path[:3] == ("score", "train_subset", "orders")
    assert may_be_missing or re.search("missing|must name|runs: must", refusal(changed(path, ...)))


def test_a_wrong_setting_leaves_no_config_file(run_stage: RunStage, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: -3"))
    result = run_stage("configure")
    assert result.returncode == 2
    assert result.stderr == "error: params.yaml: seed = -3: should be greater than or equal to 0\n"
    assert not (tmp_path / "data/configs").exists()


def test_the_settings_of_the_project_and_of_the_tests_are_accepted_and_have_equal_names() -> None:
    project = read_params(ROOT / "params.yaml")
    check_values(project, source="params.yaml")
    check_values(PARAMS, source="tests/params.yaml")
    # An experiment may have added runs.
    names, in_tests = ({path for path in leaves(params) if path[0] != "runs"} for params in (project, PARAMS))
    assert names == in_tests, "run python tests/default_params.py"


def test_every_setting_has_a_comment() -> None:
    params, section = read_params(ROOT / "params.yaml"), {}
    without = []
    for line in (ROOT / "params.yaml").read_text().splitlines():
        key, _, rest = line.partition(":")
        if line.startswith(("    ", "#")) or (not rest and ":" not in line):
            continue  # within runs, lists and mappings of mappings
        if not line.startswith(" "):
            section = params[key]
        value = section[key.strip()] if line.startswith(" ") else section
        if not isinstance(value, dict) and key.strip() not in params["runs"] and "#" not in rest:
            without.append(line)
    assert without == []
