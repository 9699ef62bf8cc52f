"""The runs that params.yaml describes, resolved."""

import re
from collections.abc import Mapping
from typing import Any

from seqlm.core.errors import ParamsError
from seqlm.core.settings import check
from seqlm.train.settings import RunConfig, TrainParams
from seqlm.vocab.settings import MODEL_PREFIXES

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MACHINE_SETTINGS = ("device", "seed", "num_threads")
"""Top-level settings that a run may override."""


def resolve_runs(params: Mapping[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Return each run's settings: ``train``, device, seed and num_threads, overridden by ``runs.NAME``.

    Raises ParamsError for a bad name or setting; ``source`` names the file.
    """
    train, runs = params.get("train"), params.get("runs")
    check(train, "train", TrainParams, source=source)
    if not isinstance(runs, Mapping) or not runs:
        raise ParamsError(f"{source}: runs: must map at least one run's name to its settings")
    assert isinstance(train, Mapping)
    shared = {**train, **{key: params.get(key) for key in _MACHINE_SETTINGS}}
    return {str(name): _resolve(str(name), own, shared, source) for name, own in runs.items()}


def _resolve(name: str, own: object, shared: Mapping[str, Any], source: str) -> RunConfig:
    if not _RUN_NAME.fullmatch(name) or name.startswith(MODEL_PREFIXES):
        raise ParamsError(
            f"{source}: runs.{name!r}: a run's name has letters, digits, '_', '.' and '-', "
            f"and does not begin with {' or '.join(MODEL_PREFIXES)}"
        )
    own = {} if own is None else own
    if not isinstance(own, Mapping):
        raise ParamsError(f"{source}: runs.{name} = {own!r}: must be a mapping of settings")
    if "run" in own:
        raise ParamsError(f"{source}: runs.{name}.run: a run's name comes before its settings, not among them")
    return check({**shared, **own, "run": name}, f"runs.{name}", RunConfig, source=source)
