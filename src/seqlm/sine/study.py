"""Everything that section 8.1 computes from one set of settings, as tables."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from seqlm.core.elementary import Floats
from seqlm.sine.networks import (
    Network,
    Predictor,
    curvature,
    init_model,
    k_step_predictions,
    multi_step_predictions,
    noisy_sine,
    repeat_last,
    rmse_by_k,
    train_model,
    windows,
)
from seqlm.sine.settings import SineParams

_NUM_TAU_SEEDS = 5
_OF_NETWORKS = 1
"""Seeds networks together with the setting ``seed``, which alone seeds the noise of the series."""
_REPEAT = "repeat the last value"


def study_sine(params: SineParams, seed: int) -> tuple[Network, dict[str, pd.DataFrame], dict[str, Any]]:
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
) -> tuple[Network, list[float]]:
    rng = np.random.default_rng([seed, _OF_NETWORKS])
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
    size, after so short a training, says little.
    """
    rows = []
    for noise, tau in product((params.noise, 0.0), params.taus):
        errors = [_one_step_rmse(params, noise, tau, seed + number) for number in range(_NUM_TAU_SEEDS)]
        rows.append((tau, noise, float(np.mean(errors)), float(np.std(errors, ddof=1))))
    return pd.DataFrame(rows, columns=["tau", "noise", "rmse", "deviation"])


def _one_step_rmse(params: SineParams, noise: float, tau: int, seed: int) -> float:
    """Return the error of a network after its training pairs."""
    series = noisy_sine(params.num_points, params.frequency, noise, seed)
    network, _ = _train("MLP", series, tau, params, seed)
    return float(_rmse(network, series, tau, 1, params)[0])
