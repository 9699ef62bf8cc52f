"""Everything that section 8.1 computes from one set of settings, as tables."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from torch import nn

from seqlm.core.devices import processes_that_learn
from seqlm.core.processes import map_in_processes
from seqlm.sine.networks import (
    Fit,
    Series,
    build_network,
    k_step_predictions,
    multi_step_predictions,
    noisy_sine,
    rmse_by_k,
    train_network,
    windows,
)
from seqlm.sine.settings import SineParams

_NUM_TAU_SEEDS = 5


@dataclass(frozen=True)
class SineStudy:
    """The trained network and what was measured with it."""

    mlp: nn.Module
    tables: dict[str, pd.DataFrame]
    """loss, predictions, errors, tau: see :func:`study_sine`."""
    summary: dict[str, Any]


def study_sine(params: SineParams, seed: int, num_processes: int | None = None) -> SineStudy:
    """Train the book's MLP and an RNN on the series, predict, and compare values of tau.

    Tables: ``loss`` (network, epoch, loss); ``predictions`` (time, observed, one_step,
    multi_step, ahead_K for each of ``steps``); ``errors`` (network, k, rmse), over the
    part of the series behind the training pairs; ``tau`` (tau, noise, rmse, deviation), one step ahead.
    They are the same for any number of processes, by default as many as help.
    """
    series = noisy_sine(params.num_points, params.frequency, params.noise, seed)
    mlp, mlp_losses = _fit("mlp", series, params.tau, params, seed)
    rnn, rnn_losses = _fit("rnn", series, params.tau, params, seed)
    max_k = max(params.steps)
    errors = []
    for name, network in (("MLP", mlp), ("RNN", rnn)):
        ahead = k_step_predictions(network, series, params.tau, max_k)
        rmse = rmse_by_k(ahead, series, params.tau, _first_test_row(params.num_train, len(ahead)))
        errors += [(name, k, value) for k, value in enumerate(rmse, start=1)]
    frame = pd.DataFrame(errors, columns=["network", "k", "rmse"])
    loss = pd.DataFrame(
        [("MLP", epoch, value) for epoch, value in enumerate(mlp_losses, 1)]
        + [("RNN", epoch, value) for epoch, value in enumerate(rnn_losses, 1)],
        columns=["network", "epoch", "loss"],
    )
    tables = {
        "loss": loss,
        "predictions": _predictions(mlp, series, params),
        "errors": frame,
        "tau": _compare_taus(params, seed, num_processes or processes_that_learn()),
    }
    by_k = frame[frame["network"] == "MLP"].set_index("k")["rmse"]
    summary = {
        "loss": {f"epoch_{epoch}": value for epoch, value in enumerate(mlp_losses, 1)},
        "rmse": {f"k_{k}": float(by_k[k]) for k in params.steps},
        "noise_floor": params.noise,
    }
    return SineStudy(mlp, tables, summary)


def _fit(
    kind: Literal["mlp", "rnn"], series: Series, tau: int, params: SineParams, seed: int
) -> tuple[nn.Module, list[float]]:
    network = build_network(kind, tau, params.num_hiddens, seed)
    fit = Fit(params.num_train, params.num_hiddens, params.lr, params.num_epochs, params.batch_size, seed)
    return network, train_network(network, *windows(series, tau), fit)


def _first_test_row(num_train: int, num_rows: int) -> int:
    """Return the first row whose start lies behind the training pairs, or 0 where none is left."""
    return num_train if num_train < num_rows else 0


def _predictions(network: nn.Module, series: Series, params: SineParams) -> pd.DataFrame:
    """Return predictions of each point in time; cells before a prediction is possible are empty."""
    size, tau = len(series), params.tau
    frame = pd.DataFrame({"time": np.arange(1, size + 1), "observed": series})
    one_step = k_step_predictions(network, series, tau, 1)[:, 0]
    frame["one_step"] = np.concatenate([np.full(tau, np.nan), one_step])
    start = params.num_train + tau
    multi_step = multi_step_predictions(network, series, tau, start)
    frame["multi_step"] = np.concatenate([np.full(start, np.nan), multi_step])
    for k in params.steps:
        ahead = k_step_predictions(network, series, tau, k)[:, k - 1]
        frame[f"ahead_{k}"] = np.concatenate([np.full(tau + k - 1, np.nan), ahead])
    return frame


def _compare_taus(params: SineParams, seed: int, num_processes: int) -> pd.DataFrame:
    """Return the one-step error behind the training pairs for each tau, with noise and without (exercise 8.1-1).

    Each is the mean over series and networks of several seeds, with the standard deviation
    over them: one network of this size, trained so shortly, says little.
    """
    compared = list(product((params.noise, 0.0), params.taus))
    seeds = range(seed, seed + _NUM_TAU_SEEDS)
    fits = [(noise, tau, one) for noise, tau in compared for one in seeds]
    errors = np.reshape(map_in_processes(partial(_one_step_rmse, params), fits, num_processes), (-1, _NUM_TAU_SEEDS))
    rows = [
        (tau, noise, float(np.mean(found)), float(np.std(found, ddof=1)))
        for (noise, tau), found in zip(compared, errors, strict=True)
    ]
    return pd.DataFrame(rows, columns=["tau", "noise", "rmse", "deviation"])


def _one_step_rmse(params: SineParams, fit: tuple[float, int, int]) -> float:
    """Return the error of a network behind its training pairs, for a noise, a tau and a seed."""
    noise, tau, seed = fit
    series = noisy_sine(params.num_points, params.frequency, noise, seed)
    network, _ = _fit("mlp", series, tau, params, seed)
    predictions = k_step_predictions(network, series, tau, 1)
    return float(rmse_by_k(predictions, series, tau, _first_test_row(params.num_train, len(predictions)))[0])
