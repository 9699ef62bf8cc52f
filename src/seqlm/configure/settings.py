"""The whole of ``params.yaml``, checked before anything runs, and the runs that it describes."""

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from ruamel.yaml import YAML

from seqlm.core.errors import ParamsError
from seqlm.core.settings import Device, NumThreads, Section, Seed, check
from seqlm.download.settings import DownloadParams
from seqlm.generate.settings import GenerateParams
from seqlm.gradients.settings import GradientsParams
from seqlm.ngrams.settings import NgramsParams
from seqlm.preprocess.settings import PreprocessParams
from seqlm.report.settings import ReportParams
from seqlm.score.settings import ScoreParams
from seqlm.sine.settings import SineParams
from seqlm.train.settings import RunConfig
from seqlm.vocab.settings import MODEL_PREFIXES, VocabParams

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(?<!\.)")
_MACHINE_SETTINGS = ("device", "seed", "num_threads")
"""Top-level settings that a run may override."""


def resolve_runs(params: Mapping[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Return each run's settings: ``train``, device, seed and num_threads, overridden by ``runs.NAME``.

    Raises ParamsError for a bad name or setting; ``source`` names the file.
    """
    train, runs = params.get("train"), params.get("runs")
    if not isinstance(train, Mapping):
        raise ParamsError(f"{source}: train: must be a mapping of settings")
    if not isinstance(runs, Mapping) or not runs:
        raise ParamsError(f"{source}: runs: must map at least one run's name to its settings")
    shared = {**train, **{key: params.get(key) for key in _MACHINE_SETTINGS}}
    # So that a wrong setting of all runs is called by its own name.
    check({**shared, "run": "train", "token": "char"}, "train", RunConfig, source=source)
    _check_names(list(runs), source)
    resolved = {}
    for name, given in runs.items():
        own = {} if given is None else given
        if not isinstance(own, Mapping):
            raise ParamsError(f"{source}: runs.{name} = {own!r}: must be a mapping of settings")
        if "run" in own:
            raise ParamsError(f"{source}: runs.{name}.run: a run's name is its key in runs, not one of its settings")
        resolved[name] = check({**shared, **own, "run": name}, f"runs.{name}", RunConfig, source=source)
    return resolved


def require_devices(params: Mapping[str, Any], runs: Mapping[str, RunConfig]) -> None:
    """Raise MachineError if a device is set that this machine lacks: training would notice only minutes later."""
    wanted = {"": params["device"]} | {f"runs.{name}.": config.device for name, config in runs.items()}
    for where, device in wanted.items():
        if device not in ("cpu", "auto"):  # which every machine has; importing PyTorch takes a second
            from seqlm.core.devices import resolve_device

            resolve_device(device, where)


def describe_runs(params: Mapping[str, Any], runs: Mapping[str, RunConfig]) -> list[str]:
    """Return a line for each run: its network, and the settings in which it differs from ``train``."""
    shared, lines = params | params["train"], []
    for name, config in runs.items():
        own = [f"{key}: {_as_text(value)}" for key, value in config if key in shared and value != shared[key]]
        lines.append(f"{name}: {config.describe()}; differs from train in {', '.join(own) or 'nothing'}")
    return lines


def _as_text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else json.dumps(value).strip('"')


def _check_names(names: list[object], source: str) -> None:
    """Raise ParamsError for a name that files, YAML, or the names of other models do not allow."""
    by_lower_case: dict[str, str] = {}
    for key in names:
        name = str(key)
        if not _RUN_NAME.fullmatch(name) or name.startswith(MODEL_PREFIXES):
            raise ParamsError(
                f"{source}: runs.{name!r}: a run's name has 1 to 100 letters from a to z, digits, '_', '.' and '-', "
                f"begins with a letter or digit, does not end with '.', and does not begin with "
                f"{' or '.join(MODEL_PREFIXES)}"
            )
        if not (isinstance(key, str) and _is_yaml_text(name)):
            raise ParamsError(f"{source}: runs.{name}: YAML reads this name as a number, a date, a truth value or null")
        if (other := by_lower_case.setdefault(name.lower(), name)) != name:
            raise ParamsError(
                f"{source}: runs.{name}: on some systems, files with this name and with the name {other} are the same"
            )


def _is_yaml_text(name: str) -> bool:
    try:
        return isinstance(YAML(typ="safe", pure=True).load(name), str)
    except ValueError:  # of a date that does not exist
        return False


def _require_program(launcher: str) -> str:
    """Raise ValueError if no such program is on PATH: DVC would notice only at the first training."""
    if shutil.which(shlex.split(launcher)[0]) is None:
        raise ValueError("no such program on PATH")
    return launcher


class Params(Section):
    """All sections but ``train`` and ``runs``, which :func:`resolve_runs` checks together."""

    device: Device
    seed: Seed
    num_threads: NumThreads
    launcher: Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=1000), AfterValidator(_require_program)]
    """What comes before the script in the command of ``train``: python, or torchrun with its options."""
    download: DownloadParams
    preprocess: PreprocessParams
    vocab: VocabParams
    ngrams: NgramsParams
    sine: SineParams
    score: ScoreParams
    generate: GenerateParams
    gradients: GradientsParams
    report: ReportParams


def check_values(values: dict[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Check every setting of a ``params.yaml`` that was read, and return the resolved runs by name.

    Raises ParamsError for the first setting that is unknown, missing or wrong; ``source`` names the file.
    """
    check({key: value for key, value in values.items() if key not in ("train", "runs")}, "", Params, source=source)
    return resolve_runs(values, source=source)
