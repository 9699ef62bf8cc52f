"""The noisy sine of section 8.1: autoregression with small networks, and all that the section
computes, as tables.

A network reads ``tau`` values and predicts the next one. A prediction is *one-step* if all ``tau``
values were observed, and *k-step* if the last k - 1 of them are predictions.

Everything is computed in double precision: processors differ in the last of its sixteen digits, and
reports have nine.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqlm.core.elementary import Floats
from seqlm.core.optimizer import Optimizer
from seqlm.pipeline.sine.settings import SineParams

Predictor = Callable[[Floats], Floats]
"""Returns the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""

_FREQUENCY, _NOISE = 0.01, 0.2
"""Of the series: frequency in radians per step, and standard deviation of the noise."""
_NUM_HIDDENS, _LR, _BATCH_SIZE = 10, 0.01, 16
"""Hidden units of the MLP and the RNN; learning rate and batch size of Adam."""
_NUM_TAU_SEEDS = 5
_NETWORK_SEED = 1
"""Seeds networks together with the setting ``seed``, which alone seeds the noise of the series."""
_REPEAT = "repeat the last value"


def noisy_sine(num_points: int, frequency: float, noise: float, seed: int) -> Floats:
    """Return sin(frequency * t) + N(0, noise²) for t = 1..T, shape ``(T,)``."""
    sine = np.array([math.sin(frequency * t) for t in range(1, num_points + 1)])
    return sine + noise * np.random.default_rng(seed).normal(0, 1, num_points)


def windows(series: Floats, tau: int) -> tuple[Floats, Floats]:
    """Return features ``(T - tau, tau)`` and labels ``(T - tau, 1)``: label i is the value after
    window i."""
    features = np.lib.stride_tricks.sliding_window_view(series, tau)[:-1]
    return features, series[tau:, None]


class SineMLP(nn.Sequential):
    """Linear layers with ReLU between them."""

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        """Draw Xavier weights (Glorot and Bengio 2010), and biases as PyTorch does.

        ``sizes`` are those of the input, the hidden layers and the output.
        """
        super().__init__()
        for num_inputs, num_outputs in itertools.pairwise(sizes):
            if len(self):
                self.append(nn.ReLU())
            layer = nn.Linear(num_inputs, num_outputs, dtype=torch.float64)
            _draw(layer.weight, math.sqrt(6 / (num_inputs + num_outputs)), rng)
            _draw(layer.bias, math.sqrt(1 / num_inputs), rng)
            self.append(layer)


class SineRNN(nn.Module):
    """A recurrent network that reads the tau values one by one (exercise 8.6-3)."""

    def __init__(self, num_hiddens: int, rng: np.random.Generator) -> None:
        """Draw weights as PyTorch does."""
        super().__init__()
        self.layer = nn.RNN(1, num_hiddens, batch_first=True, dtype=torch.float64)
        self.output = nn.Linear(num_hiddens, 1, dtype=torch.float64)
        for name, weight in self.named_parameters():
            if name == "layer.bias_hh_l0":  # one bias for each unit: the second stays zero
                nn.init.zeros_(weight.requires_grad_(False))
            else:
                _draw(weight, math.sqrt(1 / num_hiddens), rng)

    def forward(self, features: Tensor) -> Tensor:
        """Return the next value for each row of ``(B, tau)`` features, shape ``(B, 1)``."""
        predictions: Tensor = self.output(self.layer(features[:, :, None])[1][0])
        return predictions


def _draw(weight: Tensor, limit: float, rng: np.random.Generator) -> None:
    weight.data.copy_(torch.from_numpy(rng.uniform(-limit, limit, weight.shape[::-1]).T))


def repeat_last(features: Floats) -> Floats:
    """Return the naive forecast: the next value is the last one."""
    return features[:, -1:]


def init_model(kind: Literal["MLP", "RNN"], tau: int, rng: np.random.Generator) -> nn.Module:
    """Return an untrained network: the book's MLP, or an RNN."""
    return SineMLP((tau, _NUM_HIDDENS, 1), rng) if kind == "MLP" else SineRNN(_NUM_HIDDENS, rng)


def train_model(
    network: nn.Module, features: Floats, labels: Floats, num_epochs: int, rng: np.random.Generator
) -> list[float]:
    """Train with Adam on pairs of features and label; return their mean squared error after each
    epoch.

    The book's loss has no factor 1/2.
    """
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = Optimizer("adamw", weights)
    inputs, targets = torch.tensor(features), torch.tensor(labels)
    losses = []
    for _ in range(num_epochs):
        for batch in torch.split(torch.from_numpy(rng.permutation(len(inputs))), _BATCH_SIZE):
            network.zero_grad()
            loss = functional.mse_loss(network(inputs[batch]), targets[batch])
            torch.autograd.backward(loss)
            optimizer.step(_LR)
        losses.append(float(np.mean((predictor(network)(features) - labels) ** 2)))
    return losses


def predictor(network: nn.Module) -> Predictor:
    """Return what a network computes as a function of arrays."""

    @torch.no_grad()
    def predict(features: Floats) -> Floats:
        predictions: Floats = network(torch.tensor(features)).numpy()
        return predictions

    return predict


def k_step_predictions(predict: Predictor, series: Floats, tau: int, max_k: int) -> Floats:
    """Return predictions of 1 to ``max_k`` steps ahead, shape ``(T - tau - max_k + 1, max_k)``.

    Row i starts from the observed values i .. i + tau - 1; its column k - 1 predicts value
    ``i + tau + k - 1`` (indices from 0).
    """
    observed = np.lib.stride_tricks.sliding_window_view(series[: len(series) - max_k], tau)
    return _predict_ahead(predict, observed, max_k)


def _predict_ahead(predict: Predictor, observed: Floats, num_steps: int) -> Floats:
    """Values after each row of ``(B, tau)`` observed values, shape ``(B, num_steps)``."""
    values, tau = observed, observed.shape[1]
    for _ in range(num_steps):
        values = np.concatenate([values, predict(values[:, -tau:])], axis=1)
    return values[:, tau:]


def nonlinearity(predict: Predictor, features: Floats) -> float:
    """Root mean square of f(x) + f(-x) - 2 f(0) over the windows x: zero if f is affine."""
    at_zero = predict(np.zeros_like(features[:1]))
    return float(np.sqrt(np.mean((predict(features) + predict(-features) - 2 * at_zero) ** 2)))


def rmse_by_k(predictions: Floats, series: Floats, tau: int, first: int) -> Floats:
    """Return the root mean squared error of k-step predictions for each k, shape ``(max_k,)``.

    ``predictions`` are those of :func:`k_step_predictions`, without the rows before ``first``.
    """
    actual = np.lib.stride_tricks.sliding_window_view(series[tau:], predictions.shape[1])
    errors: Floats = np.sqrt(np.mean((predictions - actual)[first:] ** 2, axis=0))
    return errors


def study_sine(params: SineParams, seed: int) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Train the book's MLP and an RNN on the series, predict, and compare values of tau; return
    tables and a summary.

    Tables: ``loss`` (network, epoch, loss); ``predictions`` (time, observed, one_step, multi_step,
    ahead_K for each of ``steps``); ``errors`` (network, k, rmse), over the part of the series after
    the training pairs; ``tau`` (tau, noise, rmse, deviation), one step ahead.

    The summary has the loss after each epoch and the error of ``steps``, the same two for the naive
    forecast that repeats the last value, and how far the network is from linear.
    """
    series = noisy_sine(params.num_points, _FREQUENCY, _NOISE, seed)
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
        "rmse": {f"k_{k}": rmse["MLP"][k - 1] for k in params.steps},
        "repeat_loss": np.mean((labels - repeat_last(features)) ** 2),
        "repeat_rmse": {f"k_{k}": rmse[_REPEAT][k - 1] for k in params.steps},
        "curvature": nonlinearity(mlp, features),
        "noise_floor": _NOISE,
    }
    return tables, summary


def _train(
    kind: Literal["MLP", "RNN"], series: Floats, tau: int, params: SineParams, seed: int
) -> tuple[Predictor, list[float]]:
    rng = np.random.default_rng([seed, _NETWORK_SEED])
    network = init_model(kind, tau, rng)
    losses = train_model(network, *_training_pairs(series, tau, params), params.num_epochs, rng)
    return predictor(network), losses


def _training_pairs(series: Floats, tau: int, params: SineParams) -> tuple[Floats, Floats]:
    features, labels = windows(series, tau)
    return features[: params.num_train], labels[: params.num_train]


def _rmse(predict: Predictor, series: Floats, tau: int, max_k: int, params: SineParams) -> Floats:
    """Errors of k-step predictions after the training pairs."""
    return rmse_by_k(k_step_predictions(predict, series, tau, max_k), series, tau, params.num_train)


def _by_network(
    index: str, value: str, curves: Mapping[str, Sequence[float] | Floats]
) -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame({"network": name, index: range(1, len(curve) + 1), value: curve})
        for name, curve in curves.items()
    )


def _predictions(predict: Predictor, series: Floats, params: SineParams) -> pd.DataFrame:
    """Predictions of each point in time; cells before the first possible one are empty."""
    tau, start = params.tau, params.num_train
    first = start + tau
    predictions = {
        "one_step": k_step_predictions(predict, series, tau, 1)[:, -1],
        # Each from the predictions before it, after the training pairs.
        "multi_step": _predict_ahead(predict, series[None, start:first], len(series) - first)[0],
    }
    for k in params.steps:
        predictions[f"ahead_{k}"] = k_step_predictions(predict, series, tau, k)[:, -1]
    table = pd.DataFrame({"time": range(1, len(series) + 1), "observed": series})
    for name, values in predictions.items():
        table[name] = pd.Series(values, table.index[-len(values) :])
    return table


def _compare_taus(params: SineParams, seed: int) -> pd.DataFrame:
    """Return the one-step error after the training pairs for each tau, with noise and without
    (exercise 8.1-1).

    Each is the mean over series and networks of several seeds, with its standard deviation: a
    single network of this size, after so little training, says little.
    """
    rows = []
    seeds = range(seed, seed + _NUM_TAU_SEEDS)
    for noise, tau, each in itertools.product((_NOISE, 0.0), params.taus, seeds):
        series = noisy_sine(params.num_points, _FREQUENCY, noise, each)
        network, _ = _train("MLP", series, tau, params, each)
        rows.append((tau, noise, *_rmse(network, series, tau, 1, params)))
    errors = pd.DataFrame(rows, columns=["tau", "noise", "rmse"]).astype(float)
    by_tau = errors.astype({"tau": int}).groupby(["tau", "noise"], sort=False)["rmse"]
    return by_tau.agg(rmse="mean", deviation="std").reset_index()
