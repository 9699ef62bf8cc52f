"""Short trainings of small models on random windows of a text."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqlm.core.errors import DataError
from seqlm.core.optimizer import Optimizer
from seqlm.rnn.scratch import ScratchRNN

BATCH_SIZE = 32
_ADAM_LR = 0.01
_SGD_LR = 1.0
"""The learning rate of section 8.5."""

Callback = Callable[[int], None]
"""Called with the number of trained minibatches, before the first and after each."""


@dataclass(frozen=True)
class TruncationNoise:
    """The noise of minibatches (:class:`~seqlm.rnn.network.Noise`) in which only the truncation is random."""

    draw: Callable[[], Tensor | None]
    """Draws factors on what each step sends back, shape ``(T, B)``; None: all are 1."""

    def dropout_mask(self, hidden: Tensor, dropout: float) -> Tensor:  # noqa: ARG002 (there is no dropout)
        """Return factors of 1."""
        return hidden.new_ones(len(hidden), 1, hidden.shape[2])

    def bptt_keep(self, num_steps: int) -> Tensor | None:  # noqa: ARG002 (``draw`` knows its steps)
        """Return the factors of the truncation."""
        return self.draw()


@dataclass(frozen=True)
class ShortRun:
    """The settings of a short training. Adam's learning rate falls linearly to zero, that of SGD stays at 1."""

    num_minibatches: int
    num_steps: int
    seed: int
    optimizer: Literal["adamw", "sgd"] = "adamw"
    grad_clip: float | None = 1.0


@dataclass(frozen=True)
class StepStats:
    """One minibatch: norm of the gradient before clipping, loss in nats per token."""

    norm: float
    loss: float

    @property
    def is_finite(self) -> bool:
        """Whether training can continue."""
        return math.isfinite(self.norm) and math.isfinite(self.loss)


def draw_windows(ids: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator) -> Tensor:
    """Return random windows of ``num_steps + 1`` tokens, shape ``(batch_size, num_steps + 1)``.

    Raises DataError if the text is too short for one.
    """
    if len(ids) <= num_steps:
        raise DataError(f"train has {len(ids)} tokens: gradients.num_steps must be at most {len(ids) - 1}")
    starts = rng.integers(0, len(ids) - num_steps, batch_size)
    return torch.from_numpy(np.asarray(ids)[starts[:, None] + np.arange(num_steps + 1)].astype(np.int64))


def train_briefly(
    parameters: Iterable[nn.Parameter],
    set_gradients: Callable[[Tensor], float],
    ids: NDArray[np.integer],
    run: ShortRun,
    callback: Callback = lambda _: None,
) -> list[StepStats]:
    """Train parameters and return the statistics of each minibatch; equal seeds see equal minibatches.

    ``set_gradients`` takes windows ``(32, num_steps + 1)``, sets the gradients of the mean loss and returns that loss.
    Training ends after a step that is not finite, the last of the list.
    """
    weights, rng = list(parameters), np.random.default_rng(run.seed)
    optimizer = Optimizer(run.optimizer, weights)
    steps: list[StepStats] = []
    callback(0)
    for index in range(run.num_minibatches):
        loss = set_gradients(draw_windows(ids, BATCH_SIZE, run.num_steps, rng))
        norm = nn.utils.clip_grad_norm_(weights, run.grad_clip or math.inf)
        steps.append(StepStats(float(norm), loss))
        if not steps[-1].is_finite:
            break
        optimizer.step(_SGD_LR if run.optimizer == "sgd" else _ADAM_LR * (1 - index / run.num_minibatches))
        callback(index + 1)
    return steps


def train_scratch(
    model: ScratchRNN,
    ids: NDArray[np.integer],
    run: ShortRun,
    callback: Callback = lambda _: None,
    draw: Callable[[], Tensor | None] = lambda: None,
) -> list[StepStats]:
    """Train the RNN from scratch as :func:`train_briefly` does, each window from the zero state.

    ``draw`` draws the truncation, as for :class:`TruncationNoise`.
    """

    def set_gradients(window: Tensor) -> float:
        inputs, targets = window[:, :-1], window[:, 1:]
        nll, _ = model.compute_gradients(inputs, targets, model.initial_state(len(window)), TruncationNoise(draw))
        return float(nll.sum()) / targets.numel()

    return train_briefly([model.flat], set_gradients, ids, run, callback)


def scale_recurrence(model: ScratchRNN) -> None:
    """Scale W_hh, drawn from N(0, 0.01), to a spectral radius near 1: h^(1/2) times 0.01 by the circular law."""
    model.named_weights()["W_hh"].mul_(1 / (0.01 * model.num_hiddens**0.5))
