"""Everything that section 8.1 computes from one set of settings, as tables."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor, nn

from seqlm.core.devices import processes_that_learn
from seqlm.core.processes import map_in_processes
from seqlm.sine.networks import (
    RepeatLast,
    Series,
    curvature,
    init_model,
    k_step_predictions,
    multi_step_predictions,
    noisy_sine,
    rmse_by_k,
    train_model,
    windows,
)
from seqlm.sine.settings import SineParams

_NUM_TAU_SEEDS = 5
_REPEAT = "repeat the last value"


def study_sine(
    params: SineParams, seed: int, num_processes: int | None = None
) -> tuple[nn.Module, dict[str, pd.DataFrame], dict[str, Any]]:
    """Train the book's MLP and an RNN on the series, predict, and compare values of tau; return MLP, tables, summary.

    Tables: ``loss`` (network, epoch, loss); ``predictions`` (time, observed, one_step, multi_step, ahead_K for each of
    ``steps``); ``errors`` (network, k, rmse), over the part of the series after the training pairs; ``tau`` (tau,
    noise, rmse, deviation), one step ahead. They do not depend on the number of processes, by default as many as help.

    The summary has the loss after each epoch and the error of ``steps``, the same two for the naive forecast that
    repeats the last value, and how far the network is from linear.
    """
    series = noisy_sine(params.num_points, params.frequency, params.noise, seed)
    mlp, mlp_losses = _train("MLP", series, params.tau, params, seed)
    rnn, rnn_losses = _train("RNN", series, params.tau, params, seed)
    rmse = {
        name: _rmse(network, series, params.tau, max(params.steps), params)
        for name, network in (("MLP", mlp), ("RNN", rnn), (_REPEAT, RepeatLast()))
    }
    tables = {
        "loss": _by_network("epoch", "loss", {"MLP": mlp_losses, "RNN": rnn_losses}),
        "predictions": _predictions(mlp, series, params),
        "errors": _by_network("k", "rmse", rmse),
        "tau": _compare_taus(params, seed, num_processes or processes_that_learn()),
    }
    features, labels = _training_pairs(series, params.tau, params)
    summary = {
        "loss": {f"epoch_{epoch}": value for epoch, value in enumerate(mlp_losses, 1)},
        "rmse": {f"k_{k}": float(rmse["MLP"][k - 1]) for k in params.steps},
        "repeat_loss": float((labels - features[:, -1:]).double().square().mean()),
        "repeat_rmse": {f"k_{k}": float(rmse[_REPEAT][k - 1]) for k in params.steps},
        "curvature": curvature(mlp, features),
        "noise_floor": params.noise,
    }
    return mlp, tables, summary


def _train(
    kind: Literal["MLP", "RNN"], series: Series, tau: int, params: SineParams, seed: int
) -> tuple[nn.Module, list[float]]:
    network = init_model(kind, tau, params.num_hiddens, seed)
    return network, train_model(network, *_training_pairs(series, tau, params), params, seed)


def _training_pairs(series: Series, tau: int, params: SineParams) -> tuple[Tensor, Tensor]:
    features, labels = windows(series, tau)
    return features[: params.num_train], labels[: params.num_train]


def _rmse(network: nn.Module, series: Series, tau: int, max_k: int, params: SineParams) -> NDArray[np.float64]:
    """Return the error of k-step predictions after the training pairs, or of all if none is left there."""
    predictions = k_step_predictions(network, series, tau, max_k)
    first = params.num_train if params.num_train < len(predictions) else 0
    return rmse_by_k(predictions, series, tau, first)


def _by_network(index: str, value: str, found: Mapping[str, Iterable[float]]) -> pd.DataFrame:
    rows = [(name, number, each) for name, values in found.items() for number, each in enumerate(values, 1)]
    return pd.DataFrame(rows, columns=["network", index, value])


def _predictions(network: nn.Module, series: Series, params: SineParams) -> pd.DataFrame:
    """Return predictions of each point in time; cells before the first possible prediction are empty."""
    tau, start = params.tau, params.num_train + params.tau
    predictions = {"one_step": k_step_predictions(network, series, tau, 1)[:, 0]}
    predictions["multi_step"] = multi_step_predictions(network, series, tau, start)
    for k in params.steps:
        predictions[f"ahead_{k}"] = k_step_predictions(network, series, tau, k)[:, k - 1]
    frame = pd.DataFrame({"time": np.arange(1, len(series) + 1), "observed": series})
    for name, values in predictions.items():
        frame[name] = np.concatenate([np.full(len(series) - len(values), np.nan), values])
    return frame


def _compare_taus(params: SineParams, seed: int, num_processes: int) -> pd.DataFrame:
    """Return the one-step error after the training pairs for each tau, with noise and without (exercise 8.1-1).

    Each is the mean over series and networks of several seeds, with its standard deviation: a single network of this
    size, after so short a training, says little.
    """
    compared = list(product((params.noise, 0.0), params.taus))
    trainings = [(noise, tau, seed + number) for noise, tau in compared for number in range(_NUM_TAU_SEEDS)]
    errors = map_in_processes(partial(_one_step_rmse, params), trainings, num_processes)
    rows = [
        (tau, noise, float(np.mean(found)), float(np.std(found, ddof=1)))
        for (noise, tau), found in zip(compared, np.reshape(errors, (-1, _NUM_TAU_SEEDS)), strict=True)
    ]
    return pd.DataFrame(rows, columns=["tau", "noise", "rmse", "deviation"])


def _one_step_rmse(params: SineParams, training: tuple[float, int, int]) -> float:
    """Return the error of a network after its training pairs, for a noise, a tau and a seed."""
    noise, tau, seed = training
    series = noisy_sine(params.num_points, params.frequency, noise, seed)
    network, _ = _train("MLP", series, tau, params, seed)
    return float(_rmse(network, series, tau, 1, params)[0])
