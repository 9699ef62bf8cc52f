"""The configure stage: it checks every setting of every section and resolves each run."""

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from default_params import PARAMS_FILE
from seqlm.configure.settings import check_values, describe_runs, resolve_runs
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from seqlm.train.settings import RunConfig
from smoke import ROOT, change_params
from stages_by_hand import RunStage, prepare, refused, run_python, succeeded

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
        check_values(params, source="params.yaml")
    except ParamsError as error:
        return str(error)
    return ""


def test_each_run_gets_its_own_config_file(run_stage: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    (tmp_path / "data/configs/gone.json").write_text("{}")
    change_params(tmp_path / "params.yaml", {"launcher": "python -X utf8"})
    succeeded(run_stage("configure"))
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
    assert re.search("unknown setting|must be a mapping|should be", neighbour)
    # Any run may leave out any setting, and models of a part of train are for some kinds of token only.
    may_be_missing = path[0] == "runs" or path[:3] == ("score", "train_subset", "orders")
    assert may_be_missing or re.search("missing|must name|runs: must", refusal(changed(path, ...)))


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


def test_a_title_and_an_order_that_cannot_be_used_are_refused() -> None:
    for value in ("a\x00b", "two\nlines"):
        assert "report.title" in refusal(changed(("report", "title"), value))
    assert "less than or equal to 20" in refusal(changed(("ngrams", "max_order", "char"), 99))


def resolve(runs: Any, **top: object) -> dict[str, RunConfig]:
    return resolve_runs(PARAMS | top | {"runs": runs}, source="params.yaml")


def test_a_run_overrides_the_defaults() -> None:
    own = {"lr": 0.25, "seed": 7, "device": "cuda", "num_threads": 1}
    top = {"seed": 3, "device": "auto", "num_threads": 4}
    runs = resolve({"a": {"token": "char"} | own, "b": {"token": "word"}}, **top)
    assert {key: getattr(runs["a"], key) for key in own} == own
    assert {key: getattr(runs["b"], key) for key in own} == top | {"lr": PARAMS["train"]["lr"]}
    assert runs["a"].run == "a"


def test_each_run_is_described_by_its_network_and_its_differences() -> None:
    # What `dvc exp run -S '+runs.b={token: char, model: gru}'` makes of an entry b that is there already.
    entry = {"token": "word", "model": "lstm", "num_layers": 2, "embedding": "learned", "lr": 0.5, "max_tokens": None}
    runs = {"a": {"token": "char", "lr": PARAMS["train"]["lr"]}, "b": entry | {"token": "char", "model": "gru"}}
    first, second = describe_runs(PARAMS, resolve(runs))
    assert first == "a: scratch over char tokens, 512 hidden units; differs from train in nothing"
    assert second == (
        "b: gru over char tokens, 2 layers of 512 hidden units; differs from train in "
        "model: gru, num_layers: 2, embedding: learned, max_tokens: null, lr: 0.5"
    )


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: must map at least one run's name to its settings"),
        ({"char-x": {}}, "does not begin with char-"),
        ({"../up": {}}, "runs.'../up': a run's name has 1 to 100 letters from a to z"),
        ({"": {}}, "runs.'': a run's name has 1 to 100 letters"),
        ({"x" * 101: {}}, "a run's name has 1 to 100 letters"),
        ({"-x": {}}, "begins with a letter or digit"),
        ({"end.": {}}, "does not end with '.'"),
        ({True: {}}, "runs.True: YAML reads this name as a number, a date, a truth value or null"),
        ({"2026-01-99": {}}, "YAML reads this name as"),
        ({"lstm": {"token": "char"}, "LSTM": {"token": "char"}}, "with the name lstm are the same"),
        ({"a": 3}, "runs.a = 3: must be a mapping of settings"),
        ({"a": None}, "runs.a.token: missing"),
    ],
)
def test_a_run_needs_a_good_name_and_a_kind_of_token(runs: object, complaint: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(complaint)):
        resolve(runs)


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"seed": None}, "runs.a.seed = None: should be a valid integer"),
        ({"run": "y"}, "runs.a.run: a run's name is its key in runs, not one of its settings"),
        ({"launcher": "python"}, "runs.a.launcher: unknown setting (check the spelling)"),
        ({"format": 1}, "runs.a.format: unknown setting (check the spelling)"),
        ({"num_layers": 2}, "model scratch needs num_layers: 1"),
        ({"model": "lstm", "truncation": "full"}, "model lstm needs truncation: regular"),
        ({"checkpoint": "best", "eval_every": 1000}, "checkpoint: best needs an evaluation on val"),
        ({"warmup_share": 0.1}, "warmup_share has no effect with schedule: constant"),
        ({"weight_decay": 0.1}, "weight_decay has no effect with optimizer: sgd"),
    ],
)
def test_a_runs_settings_must_be_known_and_fit_together(own: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError, match=rf"^(?=params\.yaml: runs\.a)[^{{]*{re.escape(complaint)}"):
        resolve({"a": {"token": "char"} | own})


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({}, "model transformer needs embedding: learned"),
        ({"embedding": "learned"}, "num_heads must divide num_hiddens"),
    ],
)
def test_a_transformer_says_what_it_needs(own: dict, complaint: str, run_stage: RunStage, tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    run = {"token": "char", "model": "transformer", "num_heads": 3}
    change_params(tmp_path / "params.yaml", {"runs.x": run | own})
    refused(run_stage("configure"), 2, f"error: params.yaml: runs.x: {complaint}\n")


@pytest.mark.parametrize("setting", ["device", "runs.lstm.device"])
def test_a_device_that_the_machine_lacks_is_refused(setting: str, run_stage: RunStage, tmp_path: Path) -> None:
    # No machine has both.
    device = "cuda" if torch.backends.mps.is_available() else "mps"
    change_params(tmp_path / "params.yaml", {setting: device})
    refused(run_stage("configure"), 5, f"error: {setting}: {device}: this machine has none: set device to auto or one")
    assert not (tmp_path / "data/configs").exists()


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_settings_that_name_no_other_device_are_checked_without_pytorch(device: str, tmp_path: Path) -> None:
    change_params(prepare(tmp_path) / "params.yaml", {"device": device})
    script = (
        "import runpy, sys\n"
        "script, folder = sys.argv[1:3]\n"
        "sys.path.insert(0, folder)\n"
        "del sys.argv[1:3]\n"
        "try: runpy.run_path(script, run_name='__main__')\n"
        "except SystemExit as end: assert not end.code and 'torch' not in sys.modules\n"
    )
    stages = ROOT / "stages"
    succeeded(run_python(script, stages / "configure.py", stages, "--root", tmp_path))


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
