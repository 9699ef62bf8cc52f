"""The runs of params.yaml, resolved."""

from typing import Any

import pytest

from seqlm.configure.runs import resolve_runs
from seqlm.core.errors import ParamsError
from seqlm.core.settings import read_params
from smoke import ROOT

PARAMS = read_params(ROOT / "params.yaml")


def test_a_run_overlays_the_defaults_and_carries_the_machine() -> None:
    values = PARAMS | {"seed": 7, "runs": {"a": {"token": "char", "lr": 0.25}, "b": {"token": "word"}}}
    runs = resolve_runs(values, source="params.yaml")
    assert (runs["a"].lr, runs["b"].lr) == (0.25, values["train"]["lr"])
    assert (runs["a"].seed, runs["a"].run) == (7, "a")


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: must map at least one"),
        ({"char-x": {}}, "does not begin with char-"),
        ({"a b": {}}, "a run's name has letters"),
        ({"../up": {}}, "a run's name has letters"),
        ({"a": 3}, "runs.a = 3: must be a mapping"),
        ({"a": {}}, r"runs\.a\.token: missing"),
        ({"a": None}, r"runs\.a\.token: missing"),
        ({"a": {"token": "char", "lrate": 1}}, r"runs\.a\.lrate: unknown setting"),
        ({"a": {"token": "char", "num_layers": 2}}, "model scratch has one layer"),
        ({"a": {"token": "char", "model": "gru", "activation": "relu"}}, "activation relu belongs to"),
        ({"a": {"token": "char", "model": "lstm", "tie_weights": True}}, "tie_weights needs embedding: learned"),
        ({"a": {"token": "char", "model": "lstm", "truncation": "full"}}, "belong to model scratch"),
        ({"a": {"token": "char", "keep": "best", "eval_every": 1000}}, "keep: best needs a look at val"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(runs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError, match=complaint):
        resolve_runs(PARAMS | {"runs": runs}, source="params.yaml")
