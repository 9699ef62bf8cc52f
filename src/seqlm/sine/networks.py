"""The noisy sine of section 8.1: autoregression with a small network.

A network reads ``tau`` values and predicts the next one. A prediction is *one-step* if all ``tau`` values were
observed, and *k-step* if the last k - 1 of them are predictions.
"""

from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqlm.core.optimizer import Optimizer
from seqlm.sine.settings import SineParams

Series = NDArray[np.float32]


def noisy_sine(num_points: int, frequency: float, noise: float, seed: int) -> Series:
    """Return sin(frequency * t) + N(0, noise) for t = 1..T, shape ``(T,)``."""
    times = np.arange(1, num_points + 1)
    normal = np.random.default_rng(seed).normal(0, 1, num_points)
    return np.asarray(np.sin(frequency * times) + noise * normal, np.float32)


def windows(series: Series, tau: int) -> tuple[Tensor, Tensor]:
    """Return features ``(T - tau, tau)`` and labels ``(T - tau, 1)``: label i is the value after window i."""
    features = np.lib.stride_tricks.sliding_window_view(series, tau)[:-1]
    return torch.from_numpy(features.copy()), torch.from_numpy(series[tau:].copy())[:, None]


class SineRNN(nn.Module):
    """A recurrent network for the same task (exercise 8.6-3): it reads the tau values one by one."""

    def __init__(self, num_hiddens: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(1, num_hiddens, batch_first=True)
        self.output = nn.Linear(num_hiddens, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""
        hiddens, _ = self.rnn(features[:, :, None])  # (B, tau, h)
        return cast(Tensor, self.output(hiddens[:, -1]))


class RepeatLast(nn.Module):
    """The naive forecast: the next value is the last one."""

    def forward(self, features: Tensor) -> Tensor:
        """Return the last column of ``(B, tau)`` features, shape ``(B, 1)``."""
        return features[:, -1:]


def init_model(kind: Literal["MLP", "RNN"], tau: int, num_hiddens: int, seed: int) -> nn.Module:
    """Return an untrained network with Xavier weights (the book's MLP) or PyTorch's own (the RNN)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "RNN":
            return SineRNN(num_hiddens)
        network = nn.Sequential(nn.Linear(tau, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1))
        for layer in network:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
        return network


def train_model(network: nn.Module, features: Tensor, labels: Tensor, params: SineParams, seed: int) -> list[float]:
    """Train with Adam on pairs of features and label; return their mean squared error after each epoch.

    The book's loss has no factor 1/2.
    """
    optimizer = Optimizer("adamw", network.parameters())
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(params.num_epochs):
        order = torch.randperm(len(features), generator=generator)
        for batch in torch.split(order, params.batch_size):
            network.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(network(features[batch]), labels[batch]))
            optimizer.step(params.lr)
        with torch.no_grad():
            losses.append(float(nn.functional.mse_loss(network(features), labels)))
    return losses


def k_step_predictions(network: nn.Module, series: Series, tau: int, max_k: int) -> Series:
    """Return predictions of 1 to ``max_k`` steps ahead, shape ``(T - tau - max_k + 1, max_k)``.

    Row i starts from the observed values i .. i + tau - 1; its column k - 1 predicts value
    ``i + tau + k - 1`` (indices from 0).
    """
    return _predict_ahead(network, np.lib.stride_tricks.sliding_window_view(series[: len(series) - max_k], tau), max_k)


def multi_step_predictions(network: nn.Module, series: Series, tau: int, start: int) -> Series:
    """Return predictions of values ``start`` .. T - 1, each from the predictions before it."""
    return _predict_ahead(network, series[None, start - tau : start], len(series) - start).ravel()


@torch.no_grad()
def _predict_ahead(network: nn.Module, observed: Series, num_steps: int) -> Series:
    """Return the values that follow each row of ``(B, tau)`` observed values, shape ``(B, num_steps)``."""
    window, predictions = torch.from_numpy(observed.copy()), []
    for _ in range(num_steps):
        predictions.append(network(window))  # (B, 1)
        window = torch.cat([window[:, 1:], predictions[-1]], dim=1)
    values: Series = torch.cat(predictions, dim=1).numpy()
    return values


@torch.no_grad()
def curvature(network: nn.Module, features: Tensor) -> float:
    """Return the root mean square of f(x) + f(-x) - 2 f(0) over the windows x: zero if f is linear (affine)."""
    at_zero = network(torch.zeros_like(features[:1]))
    return float((network(features) + network(-features) - 2 * at_zero).square().mean().sqrt())


def rmse_by_k(predictions: Series, series: Series, tau: int, first: int) -> NDArray[np.float64]:
    """Return the root mean squared error of k-step predictions for each k, shape ``(max_k,)``.

    ``predictions`` are those of :func:`k_step_predictions`, without the rows before ``first``.
    """
    rows = np.arange(first, len(predictions))
    errors = [predictions[rows, k] - series[rows + tau + k] for k in range(predictions.shape[1])]
    return np.array([np.sqrt(np.mean(error.astype(np.float64) ** 2)) for error in errors])
