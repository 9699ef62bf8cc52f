"""The configure stage: it checks every setting of every section and resolves each run."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from default_params import PARAMS_FILE
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.train.settings import RunConfig
from smoke import ROOT, change_params
from stages_by_hand import RunStage, refused, succeeded

PARAMS = read_params(PARAMS_FILE)
WRONG = [{"a": "mapping"}, float("nan"), float("inf"), 10**30, "\x00" * 10_001]
# Settings that must be positive integers or numbers, or seeds.
NUMBERS = {"seed", "num_threads", "lr", "num_epochs", "batch_size", "tau"}
NOT_NUMBERS = [-1, True, "1", None, [1]]


def leaves(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
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
        resolve_runs(params, source="params.yaml")
    except ParamsError as error:
        return str(error)
    return ""


def test_each_run_gets_its_own_config_file(run_stage: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    (tmp_path / "data/configs/gone.json").write_text("{}")
    change_params(tmp_path / "params.yaml", {"launcher": "python -X utf8"})
    succeeded(run_stage("configure"))
    files = {path.stem: json.loads(path.read_text())["config"] for path in (tmp_path / "data/configs").iterdir()}
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
    assert re.search("unknown setting|should be", neighbour)
    # Any run may leave out any setting, and models of a part of train are for some kinds of token only.
    may_be_missing = path[0] == "runs" or path[:3] == ("score", "train_subset", "orders")
    assert may_be_missing or re.search("missing|at least", refusal(changed(path, ...)))


def test_the_settings_of_the_project_and_of_the_tests_are_accepted_and_have_equal_names() -> None:
    project = read_params(ROOT / "params.yaml")
    resolve_runs(project, source="params.yaml")
    resolve_runs(PARAMS, source="tests/helpers/params.yaml")
    # An experiment may have added runs.
    names, in_tests = ({path for path in leaves(params) if path[0] != "runs"} for params in (project, PARAMS))
    assert names == in_tests, "run python tests/helpers/default_params.py"


def resolve(runs: Any, **top: object) -> dict[str, RunConfig]:
    return resolve_runs(PARAMS | top | {"runs": runs}, source="params.yaml")


def test_a_run_overrides_the_defaults() -> None:
    own = {"lr": 0.25, "seed": 7, "device": "cuda", "num_threads": 1}
    top = {"seed": 3, "device": "auto", "num_threads": 4}
    runs = resolve({"a": {"token": "char"} | own, "b": {"token": "word"}}, **top)
    assert {key: getattr(runs["a"], key) for key in own} == own
    assert {key: getattr(runs["b"], key) for key in own} == top | {"lr": PARAMS["train"]["lr"]}
    assert runs["a"].run == "a"


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: Dictionary should have at least 1 item"),
        ({"char-x": {}}, "does not begin with char-"),
        ({"../up": {}}, "runs.../up = '../up': a run's name has 1 to 100 characters: letters A to Z"),
        *(({name: {}}, f" = {name!r:.80}: a run's name has") for name in ("", "x" * 101, "-x", "end.")),
        ({True: {}}, "runs.1 = True: should be a valid string"),
        ({"a": 3}, "runs.a = 3: should be a valid dictionary"),
        ({"a": None}, "runs.a.token: missing"),
    ],
)
def test_a_run_needs_a_good_name_and_a_kind_of_token(runs: object, complaint: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(complaint)):
        resolve(runs)


@pytest.mark.parametrize("key", ["run", "token", "device", "seed", "num_threads"])
def test_train_has_no_settings_that_would_be_overridden(key: str) -> None:
    with pytest.raises(ParamsError, match=f"train: must not have the key {key}: it belongs outside train, or in runs"):
        resolve({"a": {"token": "char"}}, train=PARAMS["train"] | {key: 1})


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"seed": None}, "runs.a.seed = None: should be a valid integer"),
        ({"run": "y"}, "runs.a: must not have the key run: the entry's own name is the run"),
        ({"launcher": "python"}, "runs.a.launcher: unknown setting"),
        ({"format": 1}, "runs.a.format: unknown setting"),
        ({"num_layers": 2}, "model scratch needs num_layers: 1"),
        ({"model": "lstm", "truncation": "full"}, "model lstm needs truncation: regular"),
        ({"checkpoint": "best", "eval_every": 1000}, "checkpoint: best needs an evaluation on the validation set"),
        ({"warmup_share": 0.1}, "warmup_share has no effect with schedule: constant"),
        ({"weight_decay": 0.1}, "weight_decay has no effect with optimizer: sgd"),
    ],
)
def test_a_runs_settings_must_be_known_and_fit_together(own: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError, match=rf"^(?=params\.yaml: runs\.a).*{re.escape(complaint)}"):
        resolve({"a": {"token": "char"} | own})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"seed": -3}, "seed = -3: should be greater than or equal to 0"),
        # The launcher is checked before the first training needs it.
        ({"launcher": "pyton"}, "launcher = 'pyton': no such program on PATH"),
        ({"launcher": "'pyton"}, 'launcher = "\'pyton": No closing quotation'),
    ],
)
def test_wrong_settings_leave_no_file(changes: dict, complaint: str, run_stage: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", changes)
    refused(run_stage("configure"), 2, f"error: params.yaml: {complaint}\n")
    assert not (tmp_path / "data/configs").exists()
