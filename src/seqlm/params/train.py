"""Settings of training, and how a run's own settings overlay them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from seqlm.errors import DataError, ParamsError
from seqlm.files import read_json, read_sealed
from seqlm.params.loading import Device, NumThreads, Section, Seed, check

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_RESERVED_PREFIXES = ("char-", "word-")
"""What the names of n-gram models begin with in every table."""

CONFIG_FORMAT = 1
"""Of the files that ``configure`` writes."""

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]


class TrainParams(Section):
    """Everything that decides one trained model, but for the machine's settings."""

    token: Literal["char", "word"]
    """Kind of token."""
    model: Literal["scratch", "rnn", "gru", "lstm"]
    """``scratch``: this project's own RNN of section 8.5; the others are the framework's."""
    activation: Literal["tanh", "relu"]
    """Of the models ``scratch`` and ``rnn``."""
    num_hiddens: Annotated[int, Field(ge=1, le=65536)]
    num_layers: Annotated[int, Field(ge=1, le=64)]
    embedding: Literal["one_hot", "learned"]
    """How a token enters: as a one-hot vector, or as a learned one of ``embedding_size``."""
    embedding_size: Annotated[int, Field(ge=1, le=65536)] | None
    """Size of a learned embedding; null: ``num_hiddens``."""
    tie_weights: bool
    """Use the learned embedding as the output matrix too."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Share of units dropped between layers, one mask for all steps of a minibatch."""

    sampling: Literal["random", "sequential"]
    """How minibatches are cut from the text."""
    carry_state: bool | None
    """Carry the hidden state to the next minibatch; null: for sequential sampling only, as in the book."""
    batch_size: Annotated[int, Field(ge=1, le=10**6)]
    num_steps: Annotated[int, Field(ge=1, le=10**6)]
    max_tokens: PositiveInt | None
    """Train on so many first tokens of train; null: on all."""

    optimizer: Literal["sgd", "adamw"]
    lr: Annotated[float, Field(gt=0, le=1e6)]
    """Learning rate, the highest of the schedule."""
    schedule: Literal["constant", "cosine"]
    """``cosine``: rise over ``warmup_share`` of the steps, then fall to a hundredth."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: Annotated[float, Field(ge=0, le=1)]
    """Of ``adamw``."""
    grad_clip: Annotated[float, Field(gt=0, le=1e9)] | None
    """Largest norm of the gradient (8.5.3); null: no clipping."""
    truncation: Literal["regular", "randomized", "full"]
    """Where backpropagation through time stops (8.7)."""
    keep_probability: Annotated[float, Field(gt=0, le=1)]
    """Of ``randomized``: chance that the gradient goes on to the step before."""

    num_epochs: Annotated[int, Field(ge=1, le=10**7)]
    eval_every: PositiveInt
    """Epochs between looks at val."""
    patience: PositiveInt | None
    """Stop after so many looks at val without a better one; null: never."""
    keep: Literal["last", "best"]
    """Which weights become the model: those of the last epoch, or the best on val."""
    sample_every: Annotated[int, Field(ge=0, le=10**9)]
    """Epochs between printed continuations of ``sample_prefix``; 0: none."""
    sample_prefix: Annotated[str, Field(min_length=1, max_length=1000)]
    checkpoint_s: Annotated[float, Field(ge=0, le=86400)]
    """Seconds between checkpoints, from which an interrupted training goes on."""

    @model_validator(mode="after")
    def _fit_together(self) -> "TrainParams":
        if self.model == "scratch" and (self.num_layers > 1 or self.dropout > 0 or self.embedding == "learned"):
            raise ValueError("model scratch has one layer, one-hot input and no dropout: use rnn, gru or lstm")
        if self.activation == "relu" and self.model not in ("scratch", "rnn"):
            raise ValueError(f"activation relu belongs to the models scratch and rnn, not {self.model}")
        if self.tie_weights and self.embedding != "learned":
            raise ValueError("tie_weights needs embedding: learned")
        if self.tie_weights and self.embedding_size not in (None, self.num_hiddens):
            raise ValueError("tie_weights needs embedding_size null or equal to num_hiddens")
        if self.embedding == "one_hot" and self.embedding_size is not None:
            raise ValueError("embedding_size belongs to embedding: learned")
        if self.truncation != "regular" and self.model != "scratch":
            raise ValueError("truncation randomized and full belong to model scratch")
        if self.keep == "best" and self.eval_every > self.num_epochs:
            raise ValueError("keep: best needs a look at val: eval_every must not exceed num_epochs")
        return self


class RunConfig(TrainParams):
    """A run's resolved settings: what its training depends on."""

    run: str
    device: Device
    seed: Seed
    num_threads: NumThreads

    @property
    def carries_state(self) -> bool:
        """Whether the hidden state goes on to the next minibatch."""
        return self.sampling == "sequential" if self.carry_state is None else self.carry_state


def resolve_runs(params: Mapping[str, Any], *, source: str) -> dict[str, RunConfig]:
    """Return each run's settings: ``train`` overlaid by ``runs.NAME``, with the machine's settings.

    Raises ParamsError for a bad name or setting; ``source`` names the file.
    """
    train, runs = params.get("train"), params.get("runs")
    check(train, "train", TrainParams, source=source)
    if not isinstance(runs, Mapping) or not runs:
        raise ParamsError(f"{source}: runs: must map at least one run's name to its settings")
    assert isinstance(train, Mapping)
    machine = {key: params.get(key) for key in ("device", "seed", "num_threads")}
    return {str(name): _resolve(str(name), own, train, machine, source) for name, own in runs.items()}


def _resolve(name: str, own: object, train: Mapping[str, Any], machine: Mapping[str, Any], source: str) -> RunConfig:
    if not _RUN_NAME.fullmatch(name) or name.startswith(_RESERVED_PREFIXES):
        raise ParamsError(
            f"{source}: runs.{name!r}: a run's name has letters, digits, '_', '.' and '-', "
            f"and does not begin with {' or '.join(_RESERVED_PREFIXES)}"
        )
    own = {} if own is None else own
    if not isinstance(own, Mapping):
        raise ParamsError(f"{source}: runs.{name} = {own!r}: must be a mapping of settings")
    return check({**train, **own, "run": name, **machine}, f"runs.{name}", RunConfig, source=source)


def read_config(path: Path) -> RunConfig:
    """Return a run's settings as ``configure`` resolved them, or as a user wrote them, without a seal.

    Raises DataError for a file that is broken, changed since it was sealed, or of another run;
    ParamsError for a setting that is wrong.
    """
    value = read_json(path)
    if not isinstance(value, dict) or {"format", "seal"} & set(value):
        value = read_sealed(path, CONFIG_FORMAT, "run the configure stage again")
        del value["format"]
    config = check(value, path.stem, RunConfig, source=str(path))
    if config.run != path.stem:
        raise DataError(f"{path}: holds the run {config.run!r}: run the configure stage again")
    return config
