"""Settings of training, which each run may override, and the runs that have resolved settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_checksummed, read_json
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, Seed, check
from seqlm.networks.settings import NetworkSettings
from seqlm.vocab.settings import Kind

CONFIG_FORMAT = 2
"""Format of the files that ``configure`` writes."""

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]


class TrainParams(NetworkSettings):
    """Everything that decides a trained network, except the machine's settings."""

    sampling: Literal["random", "sequential"]
    """How minibatches are cut from the text."""
    carry_state: bool | None
    """Carry the hidden state to the next minibatch; null: with sequential sampling only, as in the book."""
    batch_size: Annotated[int, Field(ge=1, le=10**6)]
    max_tokens: PositiveInt | None
    """Train on this many first tokens of train; null: on all."""

    optimizer: Literal["sgd", "adamw"]
    lr: Annotated[float, Field(gt=0, le=1e6)]
    """Learning rate; with a schedule, its maximum."""
    schedule: Literal["constant", "cosine"]
    """``cosine``: rise over ``warmup_share`` of the steps, then fall to a hundredth of ``lr``."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: Annotated[float, Field(ge=0, le=1)]
    """Of ``adamw``."""
    grad_clip: Annotated[float, Field(gt=0, le=1e9)] | None
    """Largest norm of the gradient (8.5.3); null: no clipping."""
    truncation: Literal["regular", "randomized", "full"]
    """Where backpropagation through time stops (8.7)."""
    keep_probability: Annotated[float, Field(gt=0, le=1)]
    """Of ``randomized``: probability that the gradient continues to the previous step."""

    num_epochs: Annotated[int, Field(ge=1, le=10**7)]
    token_budget: Annotated[int, Field(ge=1, le=10**15)] | None
    """Stop after this many tokens, repeated ones included; null: train all epochs.

    A training that a budget ends early is divided into ``num_epochs`` equal parts, which count as epochs in its history
    and in the settings below. The learning rate schedule covers what is trained."""
    max_flops: Annotated[float, Field(gt=0, le=1e24)] | None
    """A budget of floating-point operations: six for each parameter and token, as is usual (Kaplan et al. 2020, section
    2.1). It limits the cost of a large vocabulary; null: no limit."""
    eval_every: PositiveInt
    """Epochs between evaluations on val."""
    eval_tokens: Annotated[int, Field(ge=1000, le=10**9)] | None
    """Tokens of val that an evaluation reads at most, in evenly spaced passages. It also reads at most a quarter
    as many as were trained since the previous one, or 10,000 if that is more; null: no other limit."""
    patience: PositiveInt | None
    """Stop after this many evaluations without an improvement; null: never."""
    checkpoint: Literal["last", "best"]
    """Which weights become the model: those of the last epoch, or the best on val."""
    sample_every: Annotated[int, Field(ge=0, le=10**9)]
    """Epochs between printed continuations of ``sample_prefix``; 0: none."""
    sample_prefix: Annotated[str, Field(min_length=1, max_length=1000)]
    """``auto``: the beginning of val."""
    save_every_s: Annotated[float, Field(ge=0, le=86400)]
    """Seconds between saves of the training itself, from which it resumes if it is interrupted."""

    @model_validator(mode="after")
    def _require_consistency(self) -> "TrainParams":
        if self.checkpoint == "best" and self.eval_every > self.num_epochs:
            raise ValueError("checkpoint: best needs an evaluation on val: eval_every must not exceed num_epochs")
        if self.schedule == "constant" and self.warmup_share > 0:
            raise ValueError("warmup_share has no effect with schedule: constant: set it to 0")
        if self.optimizer == "sgd" and self.weight_decay > 0:
            raise ValueError("weight_decay has no effect with optimizer: sgd: set it to 0")
        return self


class RunConfig(TrainParams):
    """The resolved settings of a run: everything its training depends on."""

    run: str
    token: Kind
    """Kind of token. ``dvc.yaml`` reads it too: a run depends only on the corpus of its own kind."""
    device: Device
    seed: Seed
    num_threads: NumThreads

    @property
    def carries_state(self) -> bool:
        """Whether the hidden state is carried to the next minibatch."""
        return self.sampling == "sequential" if self.carry_state is None else self.carry_state

    def describe(self) -> str:
        """Return the kind of network and its size."""
        layers = f"{self.num_layers} layers of " if self.num_layers > 1 else ""
        return f"{self.model} over {self.token} tokens, {layers}{self.num_hiddens} hidden units"


def run_names(configs: Path) -> list[str]:
    """Return the names of the runs that have resolved settings, in order. Raises DataError if there is none."""
    names = sorted(path.stem for path in configs.glob("*.json"))
    if not names:
        raise DataError(f"{configs}: holds no run's settings: run the configure stage")
    return names


def read_config(path: Path) -> RunConfig:
    """Return a run's settings as ``configure`` resolved them, or as a user wrote them, without a checksum.

    Raises ParamsError if there is no such run or a setting is wrong, and DataError for a file that is broken, was
    changed since it was written, or belongs to another run.
    """
    if not path.exists():
        raise ParamsError(f"there is no run {path.stem!r}, only {', '.join(run_names(path.parent))}")
    value = read_json(path)
    if not isinstance(value, dict) or {"format", "checksum"} & set(value):
        value = read_checksummed(path, CONFIG_FORMAT, "run the configure stage again")
        del value["format"]
    config = check(value, path.stem, RunConfig, source=str(path))
    if config.run != path.stem:
        raise DataError(f"{path}: belongs to the run {config.run!r}: run the configure stage again")
    return config


def training_summaries(layout: Layout, runs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the summary of each run's training, as :mod:`seqlm.train.history` makes it."""
    return {run: read_json(layout.reports("train", run, "summary.json")) for run in runs}
