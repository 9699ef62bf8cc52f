"""The runs of params.yaml: the settings of train, overridden by a run's own, its seed, device and threads included."""

from typing import Any

import pytest

from default_params import PARAMS_FILE
from seqlm.configure.settings import describe_runs, resolve_runs
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from seqlm.train.settings import RunConfig

PARAMS = read_params(PARAMS_FILE)


def resolve(runs: Any, **top: object) -> dict[str, RunConfig]:
    return resolve_runs(PARAMS | top | {"runs": runs}, source="params.yaml")


def test_a_run_overrides_the_defaults() -> None:
    runs = resolve({"a": {"token": "char", "lr": 0.25}, "b": {"token": "word"}}, seed=7)
    assert (runs["a"].lr, runs["b"].lr) == (0.25, PARAMS["train"]["lr"])
    assert (runs["a"].seed, runs["a"].run) == (7, "a")


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


@pytest.mark.parametrize(("key", "own", "top"), [("seed", 7, 3), ("device", "cuda", "auto"), ("num_threads", 1, 4)])
def test_a_run_may_have_its_own_seed_device_and_threads(key: str, own: object, top: object) -> None:
    runs = resolve({"a": {"token": "char"}, "b": {"token": "char", key: own}}, **{key: top})
    assert (getattr(runs["a"], key), getattr(runs["b"], key)) == (top, own)


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: must map at least one run's name to its settings"),
        ({"char-x": {}}, "does not begin with char-"),
        ({"a b": {}}, "runs.'a b': a run's name has letters"),
        ({"../up": {}}, "a run's name has letters"),
        ({"": {}}, "runs.'': a run's name has letters"),
        ({"end.": {}}, "does not end with '.'"),
        ({True: {}}, "runs.True: YAML reads this name as a number, a date, a truth value or null"),
        ({None: {}}, "runs.None: YAML reads this name as"),
        ({"null": {}}, "YAML reads this name as"),
        ({"1e3": {}}, "YAML reads this name as"),
        ({"2026-01-99": {}}, "YAML reads this name as"),
        ({"Con": {"token": "char"}}, "runs.Con: Windows reserves this name"),
        ({"lpt1.x": {"token": "char"}}, "runs.lpt1.x: Windows reserves this name"),
        ({"lstm": {"token": "char"}, "LSTM": {"token": "char"}}, "with the name lstm are the same"),
        ({"a": 3}, "runs.a = 3: must be a mapping of settings"),
        ({"a": {}}, "runs.a.token: missing"),
        ({"a": None}, "runs.a.token: missing"),
    ],
)
def test_a_run_needs_a_good_name_and_a_kind_of_token(runs: object, complaint: str) -> None:
    with pytest.raises(ParamsError) as error:
        resolve(runs)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"seed": -1}, "runs.a.seed = -1: should be greater than or equal to 0"),
        ({"device": "gpu"}, "runs.a.device = 'gpu': should be 'cpu', 'cuda', 'mps' or 'auto'"),
        ({"num_threads": 0}, "runs.a.num_threads = 0: should be greater than or equal to 1"),
        ({"seed": None}, "runs.a.seed = null: should be a whole number"),
        ({"run": "y"}, "runs.a.run: a run's name is its key in runs, not one of its settings"),
        ({"lrate": 1}, "runs.a.lrate: unknown setting (check the spelling)"),
        ({"launcher": "python"}, "runs.a.launcher: unknown setting (check the spelling)"),
        ({"format": 1}, "runs.a.format: unknown setting (check the spelling)"),
        ({"num_layers": 2}, "scratch supports only num_layers: 1"),
        ({"model": "gru", "activation": "relu"}, "gru supports only activation: tanh"),
        ({"model": "lstm", "tie_weights": True}, "tie_weights needs embedding: learned"),
        ({"model": "lstm", "truncation": "full"}, "lstm supports only truncation: regular"),
        ({"keep": "best", "eval_every": 1000}, "keep: best needs an evaluation on val"),
        ({"warmup_share": 0.1}, "warmup_share has no effect with schedule: constant"),
        ({"weight_decay": 0.1}, "weight_decay has no effect with optimizer: sgd"),
    ],
)
def test_a_runs_settings_must_be_known_and_fit_together(own: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError) as error:
        resolve({"a": {"token": "char"} | own})
    assert str(error.value).startswith("params.yaml: runs.a")
    assert complaint in str(error.value)
