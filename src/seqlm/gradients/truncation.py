"""Short training of small models, what truncated backpropagation does to their gradients, and how far these reach."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from seqlm.core.elementary import Floats
from seqlm.core.errors import DataError
from seqlm.core.optimizer import Optimizer
from seqlm.gradients.settings import GradientsParams
from seqlm.networks.network import Network, nll_array

# How the small models are trained.
BATCH_SIZE = 32
_LR, _GRAD_CLIP = 0.01, 1.0
"""Of AdamW, falling linearly to zero; the largest norm of all gradients together."""

Ids = NDArray[np.integer]
Callback = Callable[[int], None]
"""Called with the number of trained minibatches, before the first and after each."""


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
    params: GradientsParams,
    seed: int,
    callback: Callback = lambda _: None,
    draw: Callable[[], Tensor | None] = lambda: None,
) -> list[float]:
    """Train a network, each window from the zero state, and return the loss of each minibatch, in nats per token.

    Equal seeds see equal minibatches. ``draw`` draws the truncation (:meth:`Truncation.draw`). Training ends
    before a step whose loss or gradient is not finite: the list is then too short.
    """
    rng, optimizer = np.random.default_rng(seed), Optimizer("adamw", network.parameters())
    losses: list[float] = []
    callback(0)
    for index in range(params.num_minibatches):
        window = draw_windows(ids, BATCH_SIZE, params.num_steps, rng)
        inputs, targets, state = window[:, :-1], window[:, 1:], network.initial_state(BATCH_SIZE)
        nll, _ = network.compute_gradients(inputs, targets, state, keep=draw())
        gradients = _gradients(network)
        norm, loss = _norm(gradients), float(nll_array(nll).sum()) / inputs.size
        if not (math.isfinite(norm) and math.isfinite(loss)):
            break
        losses.append(loss)
        if norm > _GRAD_CLIP:
            for gradient in gradients:
                gradient.mul_(_GRAD_CLIP / norm)
        optimizer.step(_LR * (1 - index / params.num_minibatches))
        callback(index + 1)
    return losses


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
    gradients = []
    for _ in range(num_draws):
        keep = truncation.draw(inputs.shape[1], len(windows), generator)
        network.compute_gradients(inputs, targets, state, keep=keep)
        gradients.append(np.concatenate([gradient.double().flatten().numpy() for gradient in _gradients(network)]))
    return np.stack(gradients)


def gradient_error(draws: Floats, full: Floats) -> tuple[float, float]:
    """Compare draws of a truncated gradient, shape ``(draws, weights)``, with the full one, shape ``(weights,)``.

    Return the bias, the distance of the mean of all draws from the full gradient, and the spread, the root mean square
    distance of a draw from that mean. Both are relative to the norm of the full gradient. Chance alone gives a bias of
    about spread / sqrt(draws).
    """
    norm, mean = np.sqrt(np.square(full).sum()), draws.cumsum(0)[-1] / len(draws)
    bias = np.sqrt(np.square(mean - full).sum()) / norm
    return float(bias), float(np.sqrt(np.square(draws - draws.mean(0)).sum(1).mean()) / norm)


_CELLS: dict[str, Callable[..., nn.RNNCellBase]] = {
    "scratch": nn.RNNCell, "relu": partial(nn.RNNCell, nonlinearity="relu"), "gru": nn.GRUCell, "lstm": nn.LSTMCell,
}  # fmt: skip
_LEAST_NORM = 1e-100
"""Smaller norms count as 0: their squares are too small for all their digits."""


def reach(model: str, network: Network, ids: NDArray[np.int64]) -> Floats:
    """Return the norm of the gradient of the last step's loss with respect to the state k steps before, k = 0 .. T - 1.

    ``model`` is "scratch", "relu", "gru" or "lstm". ``ids``: ``(B, T + 1)``, inputs and the last target; norms are
    means over batch rows. For an LSTM it is the hidden state, not the memory cell.
    """
    weights = {name: weight.double() for name, weight in network.named_weights().items()}
    if model == "scratch":
        of_cell = {"weight_ih": weights["W_xh"].T, "weight_hh": weights["W_hh"].T, "bias_ih": weights["b_h"]}
        of_cell["bias_hh"] = torch.zeros_like(weights["b_h"])
        w_hq, b_q = weights["W_hq"], weights["b_q"]
    else:
        of_cell = {name: weights[f"layers.0.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        w_hq, b_q = weights["output.weight"].T, weights["output.bias"]
    num_hiddens, vocab_size = w_hq.shape
    cell = _CELLS[model](vocab_size, num_hiddens, dtype=torch.float64)
    cell.load_state_dict(of_cell)
    inputs, targets = torch.from_numpy(ids[:, :-1].T), torch.from_numpy(ids[:, -1])
    state, states = None, []
    for one_hot in functional.one_hot(inputs, vocab_size).double():
        state = cell(one_hot, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    loss = functional.cross_entropy(states[-1] @ w_hq + b_q, targets, reduction="sum")
    gradients = torch.autograd.grad(loss, states[::-1])
    norms = np.array([float(gradient.norm(dim=1).mean()) for gradient in gradients])
    return np.where(norms < _LEAST_NORM, 0.0, norms)
