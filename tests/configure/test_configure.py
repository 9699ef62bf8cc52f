"""The configure stage: every setting of every section is checked, and each run resolved."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from seqlm.configure.settings import check_whole
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from smoke import ROOT
from stages_by_hand import RunStage

PARAMS = read_params(ROOT / "params.yaml")


def params() -> dict[str, Any]:
    return copy.deepcopy(PARAMS)


def leaves(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all settings; a run's name is no setting of the model."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, str(key)))]
    return [path]


def changed(path: tuple[str, ...], new: object) -> dict[str, Any]:
    values = params()
    section: Any = values
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = new
    return values


def check(values: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    # JSON is YAML, but for two numbers that it has no word for, and quicker to write.
    file.write_text(json.dumps(values).replace("NaN", ".nan").replace("Infinity", ".inf"))
    check_whole(file)


LEAVES = leaves(params())


def test_each_run_gets_a_file_of_its_own(run_stage: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    (tmp_path / "data/configs/gone.json").write_text("{}")
    result = run_stage("configure")
    assert result.returncode == 0, result.stderr
    files = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "data/configs").iterdir()}
    assert set(files) == set(params()["runs"])
    assert files["scratch-random"]["sampling"] == "random"
    assert files["scratch-random"]["lr"] == params()["train"]["lr"] != files["lstm"]["lr"]
    assert files["lstm"]["seed"] == params()["seed"]


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
@pytest.mark.parametrize("bad", [{"a": "mapping"}, float("nan"), float("inf"), 10**30, object], ids=str)
def test_every_setting_refuses_what_it_cannot_be(path: tuple[str, ...], bad: object, tmp_path: Path) -> None:
    value = "\x00" * 10_001 if bad is object else bad
    with pytest.raises(ParamsError) as caught:
        check(changed(path, value), tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert path[0] in message


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_every_setting_must_be_there_and_have_no_neighbour_that_is_unknown(
    path: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ParamsError, match=r"unknown setting|must be a mapping|valid dictionary|should be"):
        check(changed((*path[:-1], "no_such_setting"), 1), tmp_path)
    if path[0] == "runs":
        return  # a run need not set anything itself
    values = params()
    section: Any = values
    for key in path[:-1]:
        section = section[key]
    del section[path[-1]]
    with pytest.raises(ParamsError, match=r"missing|must name|runs: must"):
        check(values, tmp_path)


NUMBERS = [path for path in LEAVES if path[-1] in ("seed", "num_threads", "lr", "num_epochs", "batch_size", "tau")]


@pytest.mark.parametrize("path", NUMBERS, ids=".".join)
@pytest.mark.parametrize("bad", [-1, True, "1", None, [1]], ids=repr)
def test_numbers_refuse_what_looks_like_one(path: tuple[str, ...], bad: object, tmp_path: Path) -> None:
    with pytest.raises(ParamsError):
        check(changed(path, bad), tmp_path)


def test_a_bad_setting_leaves_nothing(run_stage: RunStage, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: -3"))
    result = run_stage("configure")
    assert result.returncode == 2
    assert result.stderr == "error: params.yaml: seed = -3: should be greater than or equal to 0\n"
    assert not (tmp_path / "data/configs").exists()


def test_every_setting_has_a_comment() -> None:
    section: Any = {}
    for line in (ROOT / "params.yaml").read_text().splitlines():
        key, _, rest = line.partition(":")
        if line.startswith(("    ", "#")) or (not rest and ":" not in line):
            continue  # within runs, lists and mappings of mappings
        if not line.startswith(" "):
            section = params()[key]
        value = section[key.strip()] if line.startswith(" ") else section
        if not isinstance(value, dict) and key.strip() not in params()["runs"]:
            assert "#" in rest, f"{line!r} says not what it is"
