"""The whole of ``params.yaml``: what ``configure`` checks before anything runs."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from seqlm.params.compare import CompareParams
from seqlm.params.download import DownloadParams
from seqlm.params.evaluate import EvaluateParams
from seqlm.params.generate import GenerateParams
from seqlm.params.gradients import GradientsParams
from seqlm.params.loading import Device, NumThreads, Section, Seed, check, read_params
from seqlm.params.ngrams import NgramsParams
from seqlm.params.preprocess import PreprocessParams
from seqlm.params.report import ReportParams
from seqlm.params.sine import SineParams
from seqlm.params.train import RunConfig, resolve_runs
from seqlm.params.vocab import VocabParams


class Params(Section):
    """All sections but ``train`` and ``runs``, which :func:`resolve_runs` checks together."""

    device: Device
    seed: Seed
    num_threads: NumThreads
    launcher: Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=1000)]
    """What stands before the script in the command of ``train``: python, or torchrun with its options."""
    download: DownloadParams
    preprocess: PreprocessParams
    vocab: VocabParams
    ngrams: NgramsParams
    sine: SineParams
    evaluate: EvaluateParams
    generate: GenerateParams
    gradients: GradientsParams
    report: ReportParams
    compare: CompareParams


def check_whole(path: Path) -> dict[str, RunConfig]:
    """Check every setting in the file at ``path`` and return the resolved runs by name.

    Raises ParamsError for the first setting that is unknown, missing or wrong.
    """
    values = read_params(path)
    check({key: value for key, value in values.items() if key not in ("train", "runs")}, "", Params, source=str(path))
    return resolve_runs(values, source=str(path))
