"""Settings of training, and how a run's own settings overlay them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, read_json
from seqlm.core.settings import Device, NumThreads, Seed, check
from seqlm.rnn.settings import NetworkSettings
from seqlm.vocab.settings import Kind

CONFIG_FORMAT = 1
"""Of the files that ``configure`` writes."""

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]


class TrainParams(NetworkSettings):
    """Everything that decides one trained network, but for the machine's settings."""

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
    max_trained_tokens: Annotated[int, Field(ge=1, le=10**15)] | None
    """End after so many tokens, seen again or not, where the epochs have more; null: train all epochs.

    A training that ends so is divided into ``num_epochs`` equal legs, and what is said of
    epochs below holds for them; the learning rate's schedule spans what is trained."""
    max_flops: Annotated[float, Field(gt=0, le=1e24)] | None
    """End, in the same way, after so many floating-point operations: six for each parameter and token, as is usual
    (Kaplan et al. 2020, section 2.1). It bounds what a large vocabulary costs; null: no such bound."""
    eval_every: PositiveInt
    """Epochs between looks at val."""
    eval_tokens: Annotated[int, Field(ge=1000, le=10**9)] | None
    """Most tokens of val that a look reads, from evenly spread passages; never more than a quarter of those trained
    since the look before, or 10,000; null: no other bound."""
    patience: PositiveInt | None
    """Stop after so many looks at val without a better one; null: never."""
    keep: Literal["last", "best"]
    """Which weights become the model: those of the last epoch, or the best on val."""
    sample_every: Annotated[int, Field(ge=0, le=10**9)]
    """Epochs between printed continuations of ``sample_prefix``; 0: none."""
    sample_prefix: Annotated[str, Field(min_length=1, max_length=1000)]
    """``auto``: the beginning of val."""
    checkpoint_s: Annotated[float, Field(ge=0, le=86400)]
    """Seconds between checkpoints, from which an interrupted training goes on."""

    @model_validator(mode="after")
    def _fit_together(self) -> "TrainParams":
        if self.truncation != "regular" and self.model != "scratch":
            raise ValueError("truncation randomized and full belong to model scratch")
        if self.keep == "best" and self.eval_every > self.num_epochs:
            raise ValueError("keep: best needs a look at val: eval_every must not exceed num_epochs")
        return self


class RunConfig(TrainParams):
    """A run's resolved settings: what its training depends on."""

    run: str
    token: Kind
    """Kind of token; ``dvc.yaml`` reads it too, for a run depends on the corpus of its own kind alone."""
    device: Device
    seed: Seed
    num_threads: NumThreads

    @property
    def carries_state(self) -> bool:
        """Whether the hidden state goes on to the next minibatch."""
        return self.sampling == "sequential" if self.carry_state is None else self.carry_state


def read_config(path: Path) -> RunConfig:
    """Return a run's settings as ``configure`` resolved them, or as a user wrote them, without a seal.

    Raises DataError for a file that is broken, changed since it was sealed, or of another run;
    ParamsError for a setting that is wrong.
    """
    value = read_json(path)
    if not isinstance(value, dict) or {"format", "seal"} & set(value):
        value = read_checksummed(path, CONFIG_FORMAT, "run the configure stage again")
        del value["format"]
    config = check(value, path.stem, RunConfig, source=str(path))
    if config.run != path.stem:
        raise DataError(f"{path}: holds the run {config.run!r}: run the configure stage again")
    return config
