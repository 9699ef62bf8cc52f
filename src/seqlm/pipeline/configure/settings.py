"""The whole of ``params.yaml``, checked before anything runs, and the runs that it describes."""

import re
import shlex
import shutil
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from seqlm.core.settings import Device, NumThreads, Section, Seed, check
from seqlm.pipeline.download.settings import DownloadParams
from seqlm.pipeline.generate.settings import GenerateParams
from seqlm.pipeline.gradients.settings import GradientsParams
from seqlm.pipeline.ngrams.settings import NgramsParams
from seqlm.pipeline.preprocess.settings import PreprocessParams
from seqlm.pipeline.score.settings import ScoreParams
from seqlm.pipeline.sine.settings import SineParams
from seqlm.pipeline.vocab.settings import VocabParams
from seqlm.train.settings import RunConfig
from seqlm.vocab.kinds import KINDS

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(?<!\.)")
_MODEL_PREFIXES = tuple(f"{kind}-" for kind in KINDS)
"""What the names of the n-gram models over each kind of token begin with."""
_MACHINE_SETTINGS = {"device", "seed", "num_threads"}
"""Top-level settings that a run may override."""


def _require_name(run: str) -> str:
    """Raise ValueError for a name that no file or no model may have."""
    if not _RUN_NAME.fullmatch(run) or run.startswith(_MODEL_PREFIXES):
        raise ValueError(
            "a run's name has 1 to 100 characters: letters A to Z in either case, digits, '_', "
            "'.' and '-'; it begins with a letter or digit, does not end with '.', and does not "
            f"begin with {' or '.join(_MODEL_PREFIXES)}"
        )
    return run


def _require_distinct(runs: dict[str, Any]) -> dict[str, Any]:
    """Raise ValueError for names that are one on a disk that takes small letters for capitals."""
    names: dict[str, str] = {}
    for run in runs:
        if (other := names.setdefault(run.lower(), run)) != run:
            raise ValueError(f"{other} and {run} differ only in small and capital letters")
    return runs


def forbid_keys(keys: set[str], advice: str) -> AfterValidator:
    """Return a validator of settings that raises ValueError if they have one of some keys."""

    def require(settings: dict[str, Any]) -> dict[str, Any]:
        if wrong := sorted(settings.keys() & keys):
            raise ValueError(f"must not have the key {wrong[0]}: {advice}")
        return settings

    return AfterValidator(require)


def _require_program(launcher: str) -> str:
    """Raise ValueError if no such program is on PATH: DVC would notice only at the first
    training."""
    if shutil.which(shlex.split(launcher)[0]) is None:
        raise ValueError("no such program on PATH")
    return launcher


_OUTSIDE = "it belongs outside train, or in runs"
TrainSection = Annotated[
    dict[str, Any], forbid_keys({"run", "token", *_MACHINE_SETTINGS}, _OUTSIDE)
]
RunOverrides = Annotated[dict[str, Any], forbid_keys({"run"}, "the entry's own name is the run")]
_Runs = dict[Annotated[str, AfterValidator(_require_name)], RunOverrides | None]


class Params(Section):
    """All settings; those of a run are checked by :func:`resolve_runs`."""

    device: Device
    seed: Seed
    num_threads: NumThreads
    launcher: Annotated[
        str, Field(pattern=r"^\S(.*\S)?$", max_length=1000), AfterValidator(_require_program)
    ]
    """What comes before the script in the command of ``train``: python, or torchrun with its
    options."""
    download: DownloadParams
    preprocess: PreprocessParams
    vocab: VocabParams
    ngrams: NgramsParams
    sine: SineParams
    train: TrainSection
    runs: Annotated[_Runs, Field(min_length=1), AfterValidator(_require_distinct)]
    score: ScoreParams
    generate: GenerateParams
    gradients: GradientsParams


def resolve_runs(values: dict[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Check every setting of a ``params.yaml``, and return each run's settings by its name:
    ``train``, device, seed and num_threads, overridden by ``runs.NAME``.

    Raises ParamsError for the first setting that is unknown, missing or wrong; ``source`` names the
    file.
    """
    params = check(values, "", Params, source=source)
    shared = params.train | params.model_dump(include=_MACHINE_SETTINGS)
    # Checked once as a made-up run, so that an error in a shared setting names train.KEY and not
    # the first run.
    check(shared | {"run": "train", "token": "char"}, "train", RunConfig, source=source)
    return {
        run: check(shared | (own or {}) | {"run": run}, f"runs.{run}", RunConfig, source=source)
        for run, own in params.runs.items()
    }
