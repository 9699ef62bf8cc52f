"""The noisy sine of section 8.1: autoregression with a small network.

A network reads ``tau`` values and predicts the next one. A prediction is *one-step* if all ``tau`` values were
observed, and *k-step* if the last k - 1 of them are predictions.

Everything is computed in double precision, and sums are added up in a fixed order. So the results are the same on
every processor, which those of PyTorch are not.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from seqlm.core.elementary import Floats, matmul, tanh
from seqlm.sine.settings import SineParams

Predictor = Callable[[Floats], Floats]
"""Returns the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8
"""Adam's settings, as in PyTorch."""


def noisy_sine(num_points: int, frequency: float, noise: float, seed: int) -> Floats:
    """Return sin(frequency * t) + N(0, noise) for t = 1..T, shape ``(T,)``."""
    sine = np.array([math.sin(frequency * t) for t in range(1, num_points + 1)])
    return sine + noise * np.random.default_rng(seed).normal(0, 1, num_points)


def windows(series: Floats, tau: int) -> tuple[Floats, Floats]:
    """Return features ``(T - tau, tau)`` and labels ``(T - tau, 1)``: label i is the value after window i."""
    features = np.lib.stride_tricks.sliding_window_view(series, tau)[:-1]
    return features, series[tau:, None]


class Network(ABC):
    """A small network whose gradients are written by hand."""

    weights: list[Floats]

    @abstractmethod
    def forward(self, features: Floats) -> list[Floats]:
        """Return the features ``(B, tau)``, what each layer or step outputs, and last the predictions ``(B, 1)``."""

    @abstractmethod
    def backward(self, outputs: list[Floats], slopes: Floats) -> list[Floats]:
        """Return the gradients of the weights from what :meth:`forward` returned and the gradient of predictions."""

    def __call__(self, features: Floats) -> Floats:
        """Return the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""
        return self.forward(features)[-1]


class MLP(Network):
    """Linear layers with ReLU between them."""

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        """Draw Xavier weights (Glorot and Bengio 2010), and biases as PyTorch does.

        ``sizes`` are those of the input, the hidden layers and the output.
        """
        self.weights = []
        for num_inputs, num_outputs in itertools.pairwise(sizes):
            limit, bias_limit = math.sqrt(6 / (num_inputs + num_outputs)), math.sqrt(1 / num_inputs)
            self.weights.append(rng.uniform(-limit, limit, (num_inputs, num_outputs)))
            self.weights.append(rng.uniform(-bias_limit, bias_limit, num_outputs))

    def forward(self, features: Floats) -> list[Floats]:
        """Do what :meth:`Network.forward` does."""
        outputs = [features]
        for index in range(0, len(self.weights), 2):
            outputs.append(matmul(outputs[-1], self.weights[index]) + self.weights[index + 1])
            if index + 2 < len(self.weights):
                outputs[-1] = self.activate(outputs[-1])
        return outputs

    def backward(self, outputs: list[Floats], slopes: Floats) -> list[Floats]:
        """Do what :meth:`Network.backward` does."""
        gradients: list[Floats] = []
        for index in range(len(self.weights) - 2, -1, -2):
            inputs = outputs[index // 2]
            gradients = [matmul(inputs.T, slopes), slopes.sum(0), *gradients]
            slopes = matmul(slopes, self.weights[index].T) * self.derivative(inputs)
        return gradients

    def activate(self, values: Floats) -> Floats:
        """Return ReLU of some values."""
        return np.maximum(values, 0)

    def derivative(self, activated: Floats) -> Floats:
        """Return the derivative of ReLU where it has the given values."""
        return (activated > 0).astype(np.float64)


class SineRNN(Network):
    """A recurrent network with tanh for the same task (exercise 8.6-3): it reads the tau values one by one."""

    def __init__(self, num_hiddens: int, rng: np.random.Generator) -> None:
        """Draw weights as PyTorch does."""
        limit, h = math.sqrt(1 / num_hiddens), num_hiddens
        self.weights = [rng.uniform(-limit, limit, shape) for shape in ((1, h), (h, h), (h,), (h, 1), (1,))]

    def forward(self, features: Floats) -> list[Floats]:
        """Do what :meth:`Network.forward` does."""
        w_xh, w_hh, b_h, w_hq, b_q = self.weights
        outputs = [features, np.zeros((len(features), len(b_h)))]
        for column in features.T:
            outputs.append(tanh(column[:, None] * w_xh + matmul(outputs[-1], w_hh) + b_h))
        return [*outputs, matmul(outputs[-1], w_hq) + b_q]

    def backward(self, outputs: list[Floats], slopes: Floats) -> list[Floats]:
        """Do what :meth:`Network.backward` does."""
        features, *hiddens, _ = outputs
        _, w_hh, _, w_hq, _ = self.weights
        gradients = [np.zeros_like(weight) for weight in self.weights[:3]]
        gradients += [matmul(hiddens[-1].T, slopes), slopes.sum(0)]
        slopes = matmul(slopes, w_hq.T)
        for t in range(features.shape[1] - 1, -1, -1):
            slopes = slopes * (1 - hiddens[t + 1] ** 2)
            gradients[0] += matmul(features[:, t : t + 1].T, slopes)
            gradients[1] += matmul(hiddens[t].T, slopes)
            gradients[2] += slopes.sum(0)
            slopes = matmul(slopes, w_hh.T)
        return gradients


def repeat_last(features: Floats) -> Floats:
    """Return the naive forecast: the next value is the last one."""
    return features[:, -1:]


def init_model(kind: Literal["MLP", "RNN"], tau: int, num_hiddens: int, rng: np.random.Generator) -> Network:
    """Return an untrained network: the book's MLP, or an RNN."""
    return MLP((tau, num_hiddens, 1), rng) if kind == "MLP" else SineRNN(num_hiddens, rng)


class Adam:
    """The optimizer of Kingma and Ba (2015)."""

    def __init__(self, weights: Sequence[Floats]) -> None:
        """Take the weights to change."""
        self._weights, self._num_steps = weights, 0
        self._means = [np.zeros_like(weight) for weight in weights]
        self._squares = [np.zeros_like(weight) for weight in weights]

    def step(self, gradients: Sequence[Floats], lr: float) -> None:
        """Change the weights by their gradients."""
        self._num_steps += 1
        mean_share, square_share = 1 - _BETA1**self._num_steps, 1 - _BETA2**self._num_steps
        for w, g, m, v in zip(self._weights, gradients, self._means, self._squares, strict=True):
            m += (1 - _BETA1) * (g - m)
            v += (1 - _BETA2) * (g * g - v)
            w -= lr * (m / mean_share) / (np.sqrt(v / square_share) + _EPS)


def train_model(
    network: Network, features: Floats, labels: Floats, params: SineParams, rng: np.random.Generator
) -> list[float]:
    """Train with Adam on pairs of features and label; return their mean squared error after each epoch.

    The book's loss has no factor 1/2.
    """
    optimizer = Adam(network.weights)
    losses = []
    for _ in range(params.num_epochs):
        order = rng.permutation(len(features))
        for start in range(0, len(order), params.batch_size):
            batch = order[start : start + params.batch_size]
            outputs = network.forward(features[batch])
            slopes = 2 / len(batch) * (outputs[-1] - labels[batch])  # of the mean squared error
            optimizer.step(network.backward(outputs, slopes), params.lr)
        losses.append(float(np.mean((network(features) - labels) ** 2)))
    return losses


def k_step_predictions(predict: Predictor, series: Floats, tau: int, max_k: int) -> Floats:
    """Return predictions of 1 to ``max_k`` steps ahead, shape ``(T - tau - max_k + 1, max_k)``.

    Row i starts from the observed values i .. i + tau - 1; its column k - 1 predicts value
    ``i + tau + k - 1`` (indices from 0).
    """
    return _predict_ahead(predict, np.lib.stride_tricks.sliding_window_view(series[: len(series) - max_k], tau), max_k)


def multi_step_predictions(predict: Predictor, series: Floats, tau: int, start: int) -> Floats:
    """Return predictions of values ``start`` .. T - 1, each from the predictions before it."""
    return _predict_ahead(predict, series[None, start - tau : start], len(series) - start).ravel()


def _predict_ahead(predict: Predictor, observed: Floats, num_steps: int) -> Floats:
    """Return the values that follow each row of ``(B, tau)`` observed values, shape ``(B, num_steps)``."""
    values, tau = observed, observed.shape[1]
    for _ in range(num_steps):
        values = np.concatenate([values, predict(values[:, -tau:])], axis=1)
    return values[:, tau:]


def curvature(predict: Predictor, features: Floats) -> float:
    """Return the root mean square of f(x) + f(-x) - 2 f(0) over the windows x: zero if f is linear (affine)."""
    at_zero = predict(np.zeros_like(features[:1]))
    return float(np.sqrt(np.mean((predict(features) + predict(-features) - 2 * at_zero) ** 2)))


def rmse_by_k(predictions: Floats, series: Floats, tau: int, first: int) -> Floats:
    """Return the root mean squared error of k-step predictions for each k, shape ``(max_k,)``.

    ``predictions`` are those of :func:`k_step_predictions`, without the rows before ``first``.
    """
    rows = np.arange(first, len(predictions))
    errors = [predictions[rows, k] - series[rows + tau + k] for k in range(predictions.shape[1])]
    return np.array([np.sqrt(np.mean(error**2)) for error in errors])
