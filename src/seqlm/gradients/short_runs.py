"""Short trainings of small models on random windows of a text."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.errors import DataError
from seqlm.core.optimizer import Optimizer
from seqlm.rnn.network import Network
from seqlm.rnn.scratch import ScratchRNN

BATCH_SIZE = 32
_ADAM_LR = 0.01
_SGD_LR = 1.0
"""The learning rate of section 8.5."""

Ids = NDArray[np.integer]
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


def draw_windows(ids: Ids, batch_size: int, num_steps: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return random windows of ``num_steps + 1`` tokens, shape ``(batch_size, num_steps + 1)``.

    Raises DataError if the text is too short for one.
    """
    if len(ids) <= num_steps:
        raise DataError(f"train has {len(ids)} tokens: gradients.num_steps must be at most {len(ids) - 1}")
    starts = rng.integers(0, len(ids) - num_steps, batch_size)
    windows: NDArray[np.int64] = np.asarray(ids)[starts[:, None] + np.arange(num_steps + 1)].astype(np.int64)
    return windows


def train_briefly(
    network: Network,
    ids: Ids,
    run: ShortRun,
    callback: Callback = lambda _: None,
    draw: Callable[[], Tensor | None] = lambda: None,
) -> list[StepStats]:
    """Train a network, each window from the zero state, and return the statistics of each minibatch.

    Equal seeds see equal minibatches. ``draw`` draws the truncation, as for :class:`TruncationNoise`. Training ends
    after a step that is not finite, the last of the list.
    """
    weights, rng, noise = list(network.parameters()), np.random.default_rng(run.seed), TruncationNoise(draw)
    optimizer = Optimizer(run.optimizer, weights)
    steps: list[StepStats] = []
    callback(0)
    for index in range(run.num_minibatches):
        window = torch.from_numpy(draw_windows(ids, BATCH_SIZE, run.num_steps, rng))
        inputs, targets, state = window[:, :-1], window[:, 1:], network.initial_state(BATCH_SIZE)
        nll, _ = network.compute_gradients(inputs, targets, state, noise)
        norm = gradient_norm(weights)
        steps.append(StepStats(norm, float(nll.double().numpy().sum()) / nll.numel()))
        if not steps[-1].is_finite:
            break
        if run.grad_clip is not None and norm > run.grad_clip:
            for gradient in gradients_of(weights):
                gradient.mul_(run.grad_clip / norm)
        optimizer.step(_SGD_LR if run.optimizer == "sgd" else _ADAM_LR * (1 - index / run.num_minibatches))
        callback(index + 1)
    return steps


def gradients_of(weights: Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients of weights that have one."""
    return [weight.grad for weight in weights if weight.grad is not None]


def gradient_norm(weights: Iterable[Tensor]) -> float:
    """Return the norm of the gradients of all weights together, added up in double precision by NumPy."""
    squares = [np.square(gradient.double().numpy()).sum() for gradient in gradients_of(weights)]
    return math.sqrt(math.fsum(squares)) if np.isfinite(squares).all() else math.inf


def scale_recurrence(model: ScratchRNN) -> None:
    """Scale W_hh, drawn from N(0, 0.01), to a spectral radius near 1: h^(1/2) times 0.01 by the circular law."""
    model.named_weights()["W_hh"].mul_(1 / (0.01 * model.num_hiddens**0.5))
