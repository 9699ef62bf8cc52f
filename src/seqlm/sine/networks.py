"""The noisy sine of section 8.1: autoregression with a small network.

A network sees ``tau`` values and predicts the next. Predictions are *one-step* where all
``tau`` values were observed, and *k-step* where the last k - 1 of them are predictions.
"""

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqlm.core.optimizer import Optimizer

Series = NDArray[np.float32]


def noisy_sine(num_points: int, frequency: float, noise: float, seed: int) -> Series:
    """Return sin(frequency * t) + N(0, noise) for t = 1..T, shape ``(T,)``."""
    times = np.arange(1, num_points + 1)
    draws = np.random.default_rng(seed).normal(0, 1, num_points)
    return np.asarray(np.sin(frequency * times) + noise * draws, np.float32)


def windows(series: Series, tau: int) -> tuple[Tensor, Tensor]:
    """Return features ``(T - tau, tau)`` and labels ``(T - tau, 1)``: label i is the value after window i."""
    features = np.lib.stride_tricks.sliding_window_view(series, tau)[:-1]
    return torch.from_numpy(features.copy()), torch.from_numpy(series[tau:].copy())[:, None]


class SineRNN(nn.Module):
    """The same task for a recurrent network (exercise 8.6-3): it reads the tau values one by one."""

    def __init__(self, num_hiddens: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(1, num_hiddens, batch_first=True)
        self.output = nn.Linear(num_hiddens, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""
        hiddens, _ = self.rnn(features[:, :, None])  # (B, tau, h)
        return cast(Tensor, self.output(hiddens[:, -1]))


@dataclass(frozen=True)
class Fit:
    """How a network is trained: Adam on the squared error."""

    num_train: int
    num_hiddens: int
    lr: float
    num_epochs: int
    batch_size: int
    seed: int


def build_network(kind: Literal["mlp", "rnn"], tau: int, num_hiddens: int, seed: int) -> nn.Module:
    """Return a network with Xavier weights (the book's MLP) or PyTorch's own (the RNN)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "rnn":
            return SineRNN(num_hiddens)
        network = nn.Sequential(nn.Linear(tau, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1))
        for layer in network:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
        return network


def train_network(network: nn.Module, features: Tensor, labels: Tensor, fit: Fit) -> list[float]:
    """Train on the first ``num_train`` pairs; return the mean squared error over them after each epoch.

    The book's loss has no factor 1/2.
    """
    features, labels = features[: fit.num_train], labels[: fit.num_train]
    optimizer = Optimizer("adamw", network.parameters())
    generator = torch.Generator().manual_seed(fit.seed)
    losses = []
    for _ in range(fit.num_epochs):
        order = torch.randperm(len(features), generator=generator)
        for batch in torch.split(order, fit.batch_size):
            network.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(network(features[batch]), labels[batch]))
            optimizer.step(fit.lr)
        with torch.no_grad():
            losses.append(float(nn.functional.mse_loss(network(features), labels)))
    return losses


@torch.no_grad()
def k_step_predictions(network: nn.Module, series: Series, tau: int, max_k: int) -> NDArray[np.float32]:
    """Return predictions of 1 to ``max_k`` steps ahead, shape ``(T - tau - max_k + 1, max_k)``.

    Row i starts from the observed values i .. i + tau - 1; its column k - 1 predicts value
    ``i + tau + k - 1`` (indices from 0).
    """
    known = np.lib.stride_tricks.sliding_window_view(series, tau)[: len(series) - tau - max_k + 1]
    window, columns = torch.from_numpy(known.copy()), []
    for _ in range(max_k):
        following = network(window)  # (rows, 1)
        columns.append(following)
        window = torch.cat([window[:, 1:], following], dim=1)
    return torch.cat(columns, dim=1).numpy()


@torch.no_grad()
def multi_step_predictions(network: nn.Module, series: Series, tau: int, start: int) -> NDArray[np.float32]:
    """Return predictions of values ``start`` .. T - 1, each from the predictions before it."""
    window, values = torch.from_numpy(series[start - tau : start].copy())[None], []
    for _ in range(len(series) - start):
        following = network(window)
        values.append(following)
        window = torch.cat([window[:, 1:], following], dim=1)
    return torch.cat(values)[:, 0].numpy()


def rmse_by_k(predictions: NDArray[np.float32], series: Series, tau: int, first: int) -> NDArray[np.float64]:
    """Return the root mean squared error of k-step predictions for each k, shape ``(max_k,)``.

    ``predictions`` as :func:`k_step_predictions` returns them; rows before ``first`` are
    left out.
    """
    num_rows, max_k = predictions.shape
    rows = np.arange(first, num_rows)
    errors = [predictions[rows, k] - series[rows + tau + k] for k in range(max_k)]
    return np.array([np.sqrt(np.mean(error.astype(np.float64) ** 2)) for error in errors])
