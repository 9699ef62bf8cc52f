"""Short trainings of small models, and what truncated backpropagation does to gradients and costs."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.elementary import Floats
from seqlm.core.errors import DataError
from seqlm.core.optimizer import Optimizer
from seqlm.rnn.network import Network, as_nats

BATCH_SIZE = 32
_ADAM_LR = 0.01
_SGD_LR = 1.0
"""The learning rate of section 8.5."""
_FLOAT_BYTES = 4

Ids = NDArray[np.integer]
Callback = Callable[[int], None]
"""Called with the number of trained minibatches, before the first and after each."""


@dataclass(frozen=True)
class TruncationNoise:
    """The noise of minibatches (:class:`~seqlm.rnn.noise.Noise`) in which only the truncation is random."""

    draw: Callable[[], Tensor | None]
    """Draws factors on what each step sends back, shape ``(T, B)``; None: all are 1."""

    def dropout_mask(self, size: int, dropout: float) -> Tensor:  # noqa: ARG002 (there is no dropout)
        """Return factors of 1."""
        return torch.ones(1, 1, size)

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
    rng, noise = np.random.default_rng(run.seed), TruncationNoise(draw)
    optimizer = Optimizer(run.optimizer, network.parameters())
    steps: list[StepStats] = []
    callback(0)
    for index in range(run.num_minibatches):
        window = draw_windows(ids, BATCH_SIZE, run.num_steps, rng)
        inputs, targets, state = window[:, :-1], window[:, 1:], network.initial_state(BATCH_SIZE)
        nll, _ = network.compute_gradients(inputs, targets, state, noise)
        gradients = _gradients(network)
        norm = _norm(gradients)
        steps.append(StepStats(norm, float(as_nats(nll).sum()) / inputs.size))
        if not steps[-1].is_finite:
            break
        if run.grad_clip is not None and norm > run.grad_clip:
            for gradient in gradients:
                gradient.mul_(run.grad_clip / norm)
        optimizer.step(_SGD_LR if run.optimizer == "sgd" else _ADAM_LR * (1 - index / run.num_minibatches))
        callback(index + 1)
    return steps


def _gradients(network: Network) -> list[Tensor]:
    return [weight.grad for weight in network.parameters() if weight.grad is not None]


def _norm(gradients: Iterable[Tensor]) -> float:
    """Return the norm of all gradients together, added up in double precision by NumPy."""
    squares = [np.square(gradient.double().numpy()).sum() for gradient in gradients]
    return math.sqrt(math.fsum(squares)) if np.isfinite(squares).all() else math.inf


def scale_recurrence(network: Network) -> None:
    """Scale W_hh, drawn from N(0, 0.01²), to a spectral radius near 1: h^(1/2) times 0.01 by the circular law."""
    w_hh = network.named_weights()["W_hh"]
    w_hh.mul_(1 / (0.01 * len(w_hh) ** 0.5))


@dataclass(frozen=True)
class Truncation:
    """A strategy of figure 8.7.1: "full", "regular" or "randomized".

    *Regular* cuts every ``length`` steps, at a random offset; *randomized* cuts each step with probability 1 / length
    and divides what continues by the probability of continuing (8.7.8). *Full* cuts nowhere, whatever its length.
    """

    strategy: str
    length: int

    def draw(self, num_steps: int, batch_size: int, generator: torch.Generator) -> Tensor | None:
        """Return the factors on what each step sends back, shape ``(num_steps, batch_size)``; None: all are 1."""
        if self.strategy == "full":
            return None
        if self.strategy == "regular":
            offset = int(torch.randint(self.length, (1,), generator=generator))
            kept = (torch.arange(num_steps) + offset) % self.length != 0
            return kept.float()[:, None].expand(-1, batch_size)
        probability = 1 - 1 / self.length
        return torch.empty(num_steps, batch_size).bernoulli_(probability, generator=generator) / probability

    def longest_stretch(self, num_steps: int, generator: torch.Generator) -> float:
        """Return how many steps must be stored at once: the longest stretch without a cut, a mean over 1000 draws."""
        if self.strategy == "full":
            return num_steps
        if self.strategy == "regular":
            return min(self.length, num_steps)
        keep = self.draw(num_steps, 1000, generator)
        assert keep is not None
        stretch, longest = torch.zeros(1000), torch.zeros(1000)
        for kept in keep:
            stretch = torch.where(kept > 0, stretch, 0) + 1
            longest = torch.maximum(longest, stretch)
        return float(longest.mean())

    def flop_count(self, num_steps: int, num_hiddens: int, vocab_size: int) -> float:
        """Return the multiplications and additions of one window of one batch row, forward and backward.

        Each step has three products of the output layer and two with h by h numbers, (8.7.16) among them. Each step
        except the last that is not cut has (8.7.14): a share of 1 - 1 / length on average. Inputs are looked up; sums
        over single states are left out.
        """
        cut_share = 0.0 if self.strategy == "full" else 1 / self.length
        not_cut = (num_steps - 1) * (1 - cut_share)
        return 2.0 * ((2 * num_steps + not_cut) * num_hiddens**2 + 3 * num_steps * num_hiddens * vocab_size)


def truncations(lengths: Sequence[int]) -> list[Truncation]:
    """Return the regular and the randomized truncations of ``lengths``.

    There is no randomized one of length 1: its probability of continuing would be 0, outside (0, 1].
    """
    regular = [Truncation("regular", length) for length in lengths]
    return regular + [Truncation("randomized", length) for length in lengths if length > 1]


def gradient_draws(
    network: Network, windows: NDArray[np.int64], truncation: Truncation, num_draws: int, generator: torch.Generator
) -> Floats:
    """Return gradients of all weights over windows ``(B, T + 1)``, shape ``(num_draws, weights)``."""
    inputs, targets, state = windows[:, :-1], windows[:, 1:], network.initial_state(len(windows))
    noise = TruncationNoise(lambda: truncation.draw(inputs.shape[1], len(windows), generator))
    gradients = []
    for _ in range(num_draws):
        network.compute_gradients(inputs, targets, state, noise)
        gradients.append(np.concatenate([gradient.double().flatten().numpy() for gradient in _gradients(network)]))
    return np.stack(gradients)


@dataclass(frozen=True)
class GradientErrorStats:
    """How far draws of a truncated gradient are from the full one, relative to the norm of the full one."""

    bias: float
    """Distance of the mean over draws from the full gradient; chance alone gives about ``standard_error``."""
    spread: float
    """Root mean square distance of a draw from the mean."""
    standard_error: float
    """Of the mean: spread / sqrt(draws)."""
    running: Floats
    """Bias after the first 1, 2, ... draws."""


def gradient_error(draws: Floats, full: Floats) -> GradientErrorStats:
    """Compare draws, shape ``(draws, weights)``, with the full gradient, shape ``(weights,)``."""
    counts, norm = np.arange(1, len(draws) + 1)[:, None], np.sqrt(np.square(full).sum())
    running = np.sqrt(np.square(draws.cumsum(0) / counts - full).sum(1)) / norm
    spread = float(np.sqrt(np.square(draws - draws.mean(0)).sum(1).mean()) / norm)
    return GradientErrorStats(float(running[-1]), spread, spread / len(draws) ** 0.5, running)


def stored_bytes(stretch: float, num_hiddens: int, vocab_size: int) -> float:
    """Return the bytes of one batch row's states and output probabilities over ``stretch`` steps, in float32."""
    return _FLOAT_BYTES * ((stretch + 1) * num_hiddens + stretch * vocab_size)
