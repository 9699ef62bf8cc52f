"""A run's settings: those of train, overlaid by its own, seed, device and number of threads included."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from seqlm.configure.runs import resolve_runs
from seqlm.core.errors import ParamsError
from seqlm.train.settings import RunConfig
from smoke import ROOT


def resolved(own: dict[str, Any], **top: Any) -> RunConfig:
    params: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    runs = {"x": {"token": "char"} | own, "other": {"token": "char"}}
    return resolve_runs(params | top | {"runs": runs}, source="params.yaml")["x"]


@pytest.mark.parametrize(("key", "own", "top"), [("seed", 7, 3), ("device", "cuda", "auto"), ("num_threads", 1, 4)])
def test_a_run_may_have_its_own_seed_device_and_threads(key: str, own: object, top: object) -> None:
    assert getattr(resolved({}, **{key: top}), key) == top
    assert getattr(resolved({key: own}, **{key: top}), key) == own


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"seed": -1}, "runs.x.seed = -1: should be greater than or equal to 0"),
        ({"device": "gpu"}, "runs.x.device = 'gpu': should be 'cpu', 'cuda', 'mps' or 'auto'"),
        ({"num_threads": 0}, "runs.x.num_threads = 0: should be greater than or equal to 1"),
        ({"seed": None}, "runs.x.seed = null: should be a valid integer"),
        ({"run": "y"}, "runs.x.run: a run's name stands before its settings, not among them"),
        ({"launcher": "python"}, "runs.x.launcher: unknown setting (check the spelling)"),
        ({"format": 1}, "runs.x.format: unknown setting (check the spelling)"),
    ],
)
def test_what_a_run_may_not_have_is_refused(own: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError) as caught:
        resolved(own)
    assert str(caught.value) == f"params.yaml: {complaint}"
