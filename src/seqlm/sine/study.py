"""The noisy sine of section 8.1: autoregression with small networks, and all that the section computes, as tables.

A network reads ``tau`` values and predicts the next one. A prediction is *one-step* if all ``tau`` values were
observed, and *k-step* if the last k - 1 of them are predictions.

Everything is computed in double precision, and sums are added up in a fixed order. So the results are the same on
every processor, which those of PyTorch are not.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from seqlm.core.elementary import Floats, matmul, tanh
from seqlm.sine.settings import SineParams

Predictor = Callable[[Floats], Floats]
"""Returns the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8
"""Adam's settings, as in PyTorch."""
_NUM_TAU_SEEDS = 5
_NETWORK_SEED = 1
"""Seeds networks together with the setting ``seed``, which alone seeds the noise of the series."""
_REPEAT = "repeat the last value"


def noisy_sine(num_points: int, frequency: float, noise: float, seed: int) -> Floats:
    """Return sin(frequency * t) + N(0, noise²) for t = 1..T, shape ``(T,)``."""
    sine = np.array([math.sin(frequency * t) for t in range(1, num_points + 1)])
    return sine + noise * np.random.default_rng(seed).normal(0, 1, num_points)


def windows(series: Floats, tau: int) -> tuple[Floats, Floats]:
    """Return features ``(T - tau, tau)`` and labels ``(T - tau, 1)``: label i is the value after window i."""
    features = np.lib.stride_tricks.sliding_window_view(series, tau)[:-1]
    return features, series[tau:, None]


class SineNetwork(ABC):
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


class SineMLP(SineNetwork):
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
        """Do what :meth:`SineNetwork.forward` does."""
        outputs = [features]
        for index in range(0, len(self.weights), 2):
            outputs.append(matmul(outputs[-1], self.weights[index]) + self.weights[index + 1])
            if index + 2 < len(self.weights):
                outputs[-1] = self.activate(outputs[-1])
        return outputs

    def backward(self, outputs: list[Floats], slopes: Floats) -> list[Floats]:
        """Do what :meth:`SineNetwork.backward` does."""
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


class SineRNN(SineNetwork):
    """A recurrent network with tanh for the same task (exercise 8.6-3): it reads the tau values one by one."""

    def __init__(self, num_hiddens: int, rng: np.random.Generator) -> None:
        """Draw weights as PyTorch does."""
        limit, h = math.sqrt(1 / num_hiddens), num_hiddens
        self.weights = [rng.uniform(-limit, limit, shape) for shape in ((1, h), (h, h), (h,), (h, 1), (1,))]

    def forward(self, features: Floats) -> list[Floats]:
        """Do what :meth:`SineNetwork.forward` does."""
        w_xh, w_hh, b_h, w_hq, b_q = self.weights
        outputs = [features, np.zeros((len(features), len(b_h)))]
        for column in features.T:
            outputs.append(tanh(column[:, None] * w_xh + matmul(outputs[-1], w_hh) + b_h))
        return [*outputs, matmul(outputs[-1], w_hq) + b_q]

    def backward(self, outputs: list[Floats], slopes: Floats) -> list[Floats]:
        """Do what :meth:`SineNetwork.backward` does."""
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


def init_model(kind: Literal["MLP", "RNN"], tau: int, num_hiddens: int, rng: np.random.Generator) -> SineNetwork:
    """Return an untrained network: the book's SineMLP, or an RNN."""
    return SineMLP((tau, num_hiddens, 1), rng) if kind == "MLP" else SineRNN(num_hiddens, rng)


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
    network: SineNetwork, features: Floats, labels: Floats, params: SineParams, rng: np.random.Generator
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


def study_sine(params: SineParams, seed: int) -> tuple[SineNetwork, dict[str, pd.DataFrame], dict[str, Any]]:
    """Train the book's MLP and an RNN on the series, predict, and compare values of tau; return MLP, tables, summary.

    Tables: ``loss`` (network, epoch, loss); ``predictions`` (time, observed, one_step, multi_step, ahead_K for each of
    ``steps``); ``errors`` (network, k, rmse), over the part of the series after the training pairs; ``tau`` (tau,
    noise, rmse, deviation), one step ahead.

    The summary has the loss after each epoch and the error of ``steps``, the same two for the naive forecast that
    repeats the last value, and how far the network is from linear.
    """
    series = noisy_sine(params.num_points, params.frequency, params.noise, seed)
    mlp, mlp_losses = _train("MLP", series, params.tau, params, seed)
    rnn, rnn_losses = _train("RNN", series, params.tau, params, seed)
    rmse = {
        name: _rmse(network, series, params.tau, max(params.steps), params)
        for name, network in (("MLP", mlp), ("RNN", rnn), (_REPEAT, repeat_last))
    }
    tables = {
        "loss": _by_network("epoch", "loss", {"MLP": mlp_losses, "RNN": rnn_losses}),
        "predictions": _predictions(mlp, series, params),
        "errors": _by_network("k", "rmse", rmse),
        "tau": _compare_taus(params, seed),
    }
    features, labels = _training_pairs(series, params.tau, params)
    summary = {
        "loss": {f"epoch_{epoch}": value for epoch, value in enumerate(mlp_losses, 1)},
        "rmse": {f"k_{k}": float(rmse["MLP"][k - 1]) for k in params.steps},
        "repeat_loss": float(np.mean((labels - repeat_last(features)) ** 2)),
        "repeat_rmse": {f"k_{k}": float(rmse[_REPEAT][k - 1]) for k in params.steps},
        "curvature": curvature(mlp, features),
        "noise_floor": params.noise,
    }
    return mlp, tables, summary


def _train(
    kind: Literal["MLP", "RNN"], series: Floats, tau: int, params: SineParams, seed: int
) -> tuple[SineNetwork, list[float]]:
    rng = np.random.default_rng([seed, _NETWORK_SEED])
    network = init_model(kind, tau, params.num_hiddens, rng)
    return network, train_model(network, *_training_pairs(series, tau, params), params, rng)


def _training_pairs(series: Floats, tau: int, params: SineParams) -> tuple[Floats, Floats]:
    features, labels = windows(series, tau)
    return features[: params.num_train], labels[: params.num_train]


def _rmse(predict: Predictor, series: Floats, tau: int, max_k: int, params: SineParams) -> Floats:
    """Return the error of k-step predictions after the training pairs; the settings see to it that there are some."""
    return rmse_by_k(k_step_predictions(predict, series, tau, max_k), series, tau, params.num_train)


def _by_network(index: str, value: str, found: Mapping[str, Iterable[float]]) -> pd.DataFrame:
    rows = [(name, number, each) for name, values in found.items() for number, each in enumerate(values, 1)]
    return pd.DataFrame(rows, columns=["network", index, value])


def _predictions(predict: Predictor, series: Floats, params: SineParams) -> pd.DataFrame:
    """Return predictions of each point in time; cells before the first possible prediction are empty."""
    tau, start = params.tau, params.num_train + params.tau
    predictions = {"one_step": k_step_predictions(predict, series, tau, 1)[:, 0]}
    predictions["multi_step"] = multi_step_predictions(predict, series, tau, start)
    for k in params.steps:
        predictions[f"ahead_{k}"] = k_step_predictions(predict, series, tau, k)[:, k - 1]
    frame = pd.DataFrame({"time": np.arange(1, len(series) + 1), "observed": series})
    for name, values in predictions.items():
        frame[name] = np.concatenate([np.full(len(series) - len(values), np.nan), values])
    return frame


def _compare_taus(params: SineParams, seed: int) -> pd.DataFrame:
    """Return the one-step error after the training pairs for each tau, with noise and without (exercise 8.1-1).

    Each is the mean over series and networks of several seeds, with its standard deviation: a single network of this
    size, after so little training, says little.
    """
    rows = []
    for noise, tau in itertools.product(dict.fromkeys((params.noise, 0.0)), params.taus):
        errors = [_one_step_rmse(params, noise, tau, seed + number) for number in range(_NUM_TAU_SEEDS)]
        rows.append((tau, noise, float(np.mean(errors)), float(np.std(errors, ddof=1))))
    return pd.DataFrame(rows, columns=["tau", "noise", "rmse", "deviation"])


def _one_step_rmse(params: SineParams, noise: float, tau: int, seed: int) -> float:
    """Return the error of a network after its training pairs."""
    series = noisy_sine(params.num_points, params.frequency, noise, seed)
    network, _ = _train("MLP", series, tau, params, seed)
    return float(_rmse(network, series, tau, 1, params)[0])
