"""The whole of ``params.yaml``: what ``configure`` checks before anything runs."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from seqlm.compare.settings import CompareParams
from seqlm.configure.runs import resolve_runs
from seqlm.core.settings import Device, NumThreads, Section, Seed, check, read_params
from seqlm.download.settings import DownloadParams
from seqlm.evaluate.settings import EvaluateParams
from seqlm.generate.settings import GenerateParams
from seqlm.gradients.settings import GradientsParams
from seqlm.heldout.settings import HeldoutParams
from seqlm.ngrams.settings import NgramsParams
from seqlm.preprocess.settings import PreprocessParams
from seqlm.report.settings import ReportParams
from seqlm.score.settings import ScoreParams
from seqlm.sine.settings import SineParams
from seqlm.train.settings import RunConfig
from seqlm.vocab.settings import VocabParams


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
    """What stands before the script in the command of ``train``: python, or torchrun with its options."""
    download: DownloadParams
    preprocess: PreprocessParams
    vocab: VocabParams
    ngrams: NgramsParams
    sine: SineParams
    heldout: HeldoutParams
    score: ScoreParams
    evaluate: EvaluateParams
    generate: GenerateParams
    gradients: GradientsParams
    report: ReportParams
    compare: CompareParams


def check_whole(path: Path) -> dict[str, RunConfig]:
    """Check every setting in the file at ``path`` and return the resolved runs by name.

    Raises ParamsError for the first setting that is unknown, missing or wrong.
    """
    return check_values(read_params(path), source=str(path))


def check_values(values: dict[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Do what :func:`check_whole` does for settings that were already read; ``source`` names them in errors."""
    check({key: value for key, value in values.items() if key not in ("train", "runs")}, "", Params, source=source)
    return resolve_runs(values, source=source)
