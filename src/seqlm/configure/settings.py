"""The whole of ``params.yaml``, checked before anything runs, and the runs that it describes."""

import re
import shlex
import shutil
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from seqlm.core.errors import ParamsError
from seqlm.core.settings import Device, NumThreads, Section, Seed, check
from seqlm.download.settings import DownloadParams
from seqlm.generate.settings import GenerateParams
from seqlm.gradients.settings import GradientsParams
from seqlm.ngrams.settings import NgramsParams
from seqlm.preprocess.settings import PreprocessParams
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
    resolved = {}
    for name, given in runs.items():
        if not (isinstance(name, str) and _RUN_NAME.fullmatch(name)) or name.startswith(MODEL_PREFIXES):
            raise ParamsError(
                f"{source}: runs.{name!r}: a run's name is text of 1 to 100 letters from a to z, digits, '_', '.' and "
                f"'-', begins with a letter or digit, does not end with '.', and does not begin with "
                f"{' or '.join(MODEL_PREFIXES)}"
            )
        own = {} if given is None else given
        if not isinstance(own, Mapping) or "run" in own:
            raise ParamsError(
                f"{source}: runs.{name} = {own!r}: must be a mapping of settings other than run, its name"
            )
        resolved[name] = check({**shared, **own, "run": name}, f"runs.{name}", RunConfig, source=source)
    return resolved


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


def check_values(values: dict[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Check every setting of a ``params.yaml`` that was read, and return the resolved runs by name.

    Raises ParamsError for the first setting that is unknown, missing or wrong; ``source`` names the file.
    """
    check({key: value for key, value in values.items() if key not in ("train", "runs")}, "", Params, source=source)
    return resolve_runs(values, source=source)
