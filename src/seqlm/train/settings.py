"""Settings of training, which each run may override."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Device, NumThreads, Seed
from seqlm.networks.settings import NetworkSettings
from seqlm.vocab.kinds import Kind

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]


class RunConfig(NetworkSettings):
    """The resolved settings of a run: everything its training depends on."""

    sampling: Literal["random", "sequential"]
    """How minibatches are cut from the text. Sequential ones carry the hidden state on, as in the
    book."""
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

    A training that a budget ends early is divided into ``num_epochs`` equal parts, which count as
    epochs in its history and in the settings below. The learning rate schedule covers what is
    trained."""
    eval_every: PositiveInt
    """Epochs between evaluations on val."""
    eval_tokens: Annotated[int, Field(ge=1000, le=10**9)] | None
    """Tokens of val that an evaluation reads at most, in evenly spaced passages. It also reads at
    most a quarter as many as were trained since the previous one, or 10,000 if that is more; null:
    no other limit."""
    patience: PositiveInt | None
    """Stop after this many evaluations without an improvement; null: never."""
    checkpoint: Literal["last", "best"]
    """Which weights become the model: those of the last epoch, or the best on val."""
    sample_every: Annotated[int, Field(ge=0, le=10**9)]
    """Epochs between printed continuations of ``sample_prefix``; 0: none."""
    sample_prefix: Annotated[str, Field(min_length=1, max_length=1000)]
    """Text that samples continue. The beginning of val replaces ``auto`` and a text that never
    occurs in train."""

    run: str
    token: Kind
    """Kind of token. ``dvc.yaml`` reads it too: a run depends only on the corpus of its own
    kind."""
    device: Device
    seed: Seed
    num_threads: NumThreads

    @model_validator(mode="after")
    def _require_consistency(self) -> "RunConfig":
        if self.checkpoint == "best" and self.eval_every > self.num_epochs:
            raise ValueError(
                "checkpoint: best needs an evaluation on the validation set: eval_every must not "
                "exceed num_epochs"
            )
        if self.schedule == "constant" and self.warmup_share > 0:
            raise ValueError("warmup_share has no effect with schedule: constant: set it to 0")
        if self.optimizer == "sgd" and self.weight_decay > 0:
            raise ValueError("weight_decay has no effect with optimizer: sgd: set it to 0")
        return self

    def describe(self) -> str:
        """Return the kind of network and its size."""
        layers = f"{self.num_layers} layers of " if self.num_layers > 1 else ""
        return f"{self.model} over {self.token} tokens, {layers}{self.num_hiddens} hidden units"
