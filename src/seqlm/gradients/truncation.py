"""What truncated backpropagation does to gradients, what it costs, and how well it trains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.elementary import Floats
from seqlm.core.metrics import perplexity
from seqlm.gradients.short_runs import BATCH_SIZE, Ids, ShortRun, TruncationNoise, train_briefly
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.scratch import ScratchRNN

_FLOAT_BYTES = 4


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


def truncations(lengths: Sequence[int]) -> list[Truncation]:
    """Return the regular and the randomized truncations of ``lengths``.

    There is no randomized one of length 1: its probability of continuing would be 0, outside (0, 1].
    """
    regular = [Truncation("regular", length) for length in lengths]
    return regular + [Truncation("randomized", length) for length in lengths if length > 1]


def gradient_draws(
    model: ScratchRNN, windows: NDArray[np.int64], truncation: Truncation, num_draws: int, generator: torch.Generator
) -> Floats:
    """Return gradients of all weights over windows ``(B, T + 1)``, shape ``(num_draws, weights)``."""
    ids = torch.from_numpy(windows)
    inputs, targets, state = ids[:, :-1], ids[:, 1:], model.initial_state(len(ids))
    noise = TruncationNoise(lambda: truncation.draw(inputs.shape[1], len(ids), generator))
    gradients = []
    for _ in range(num_draws):
        model.compute_gradients(inputs, targets, state, noise)
        assert model.flat.grad is not None
        gradients.append(model.flat.grad.double().numpy().copy())
    return np.stack(gradients)


@dataclass(frozen=True)
class GradientError:
    """How far draws of a truncated gradient are from the full one, relative to the norm of the full one."""

    bias: float
    """Distance of the mean over draws from the full gradient; chance alone gives about ``standard_error``."""
    spread: float
    """Root mean square distance of a draw from the mean."""
    standard_error: float
    """Of the mean: spread / sqrt(draws)."""
    running: Floats
    """Bias after the first 1, 2, ... draws."""


def gradient_error(draws: Floats, full: Floats) -> GradientError:
    """Compare draws, shape ``(draws, weights)``, with the full gradient, shape ``(weights,)``."""
    counts, norm = np.arange(1, len(draws) + 1)[:, None], np.sqrt(np.square(full).sum())
    running = np.sqrt(np.square(draws.cumsum(0) / counts - full).sum(1)) / norm
    spread = float(np.sqrt(np.square(draws - draws.mean(0)).sum(1).mean()) / norm)
    return GradientError(float(running[-1]), spread, spread / len(draws) ** 0.5, running)


def longest_stretch(truncation: Truncation, num_steps: int, generator: torch.Generator) -> float:
    """Return how many steps must be stored at once: the longest stretch without a cut, as the mean over 1000 draws."""
    if truncation.strategy == "full":
        return num_steps
    if truncation.strategy == "regular":
        return min(truncation.length, num_steps)
    keep = truncation.draw(num_steps, 1000, generator)
    assert keep is not None
    stretch, longest = torch.zeros(1000), torch.zeros(1000)
    for kept in keep:
        stretch = torch.where(kept > 0, stretch, 0) + 1
        longest = torch.maximum(longest, stretch)
    return float(longest.mean())


def flop_count(truncation: Truncation, num_steps: int, num_hiddens: int, vocab_size: int) -> float:
    """Return the multiplications and additions of one window of one batch row, forward and backward.

    Each step has three products of the output layer and two with h by h numbers, (8.7.16) among them. Each step but the
    last that is not cut has (8.7.14): a share of 1 - 1 / length on average. Inputs are looked up; sums over single
    states are left out.
    """
    cut_share = 0.0 if truncation.strategy == "full" else 1 / truncation.length
    not_cut = (num_steps - 1) * (1 - cut_share)
    return 2.0 * ((2 * num_steps + not_cut) * num_hiddens**2 + 3 * num_steps * num_hiddens * vocab_size)


def stored_bytes(stretch: float, num_hiddens: int, vocab_size: int) -> float:
    """Return the bytes of one batch row's states and output probabilities over ``stretch`` steps, in float32."""
    return _FLOAT_BYTES * ((stretch + 1) * num_hiddens + stretch * vocab_size)


def trained_perplexity(
    truncation: Truncation,
    train_ids: Ids,
    val_ids: Ids,
    vocab_size: int,
    num_hiddens: int,
    run: ShortRun,
) -> float:
    """Return the perplexity on val of the RNN from scratch after a short training; nan if the training diverged.

    Equal seeds give equal initial weights and equal minibatches, whatever the truncation.
    """
    generator = torch.Generator().manual_seed(run.seed)
    model = ScratchRNN(vocab_size, num_hiddens, "tanh", generator)
    steps = train_briefly(model, train_ids, run, draw=lambda: truncation.draw(run.num_steps, BATCH_SIZE, generator))
    if steps and not steps[-1].is_finite:
        return float("nan")
    nll = stream_nll(model, val_ids)
    return perplexity(float(nll.sum()), len(nll))
