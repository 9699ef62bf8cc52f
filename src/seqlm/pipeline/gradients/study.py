"""Everything that section 8.7 measures on one text, as tables.

Short training of small models, what truncated backpropagation does to their gradients, and how far
these reach.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from seqlm.core.elementary import Floats
from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.core.threads import R, T, imap
from seqlm.networks.building import build_network
from seqlm.networks.initial import mask, masks_rng
from seqlm.networks.network import Network, nll_array, stream_nll
from seqlm.networks.settings import NetworkSettings
from seqlm.pipeline.gradients.settings import GradientsParams

Ids = NDArray[np.integer]
Tables = dict[str, pd.DataFrame]
Row = tuple[Any, ...]
Mask = NDArray[np.float32]

# How much is measured.
_MAX_TRAIN_TOKENS, _MAX_VAL_TOKENS = 1_000_000, 20_000
"""Tokens read from longer splits: enough for small models."""
_NUM_WINDOWS = 64
"""Number of windows on which reach and truncation are measured."""
_MAX_VOCAB = 128
"""Most frequent tokens that are kept, to limit the cost; the others become ``<unk>``."""
MODELS: dict[str, tuple[str, Literal["tanh", "relu"]]] = {
    "scratch": ("scratch", "tanh"),
    "relu": ("rnn", "relu"),
    "gru": ("gru", "tanh"),
    "lstm": ("lstm", "tanh"),
}
_UNGATED = ("scratch", "relu")
"""The states of GRU and LSTM also pass gates: no single matrix carries them."""

# How the small models are trained.
BATCH_SIZE = 32
_LR, _GRAD_CLIP = 0.01, 1.0
"""Learning rate of AdamW, which falls linearly to zero; largest norm of the whole gradient."""


def draw_windows(
    ids: Ids, batch_size: int, num_steps: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return random windows of ``num_steps + 1`` tokens, shape ``(batch_size, num_steps + 1)``.

    Raises DataError if the text is too short for one.
    """
    if len(ids) <= num_steps:
        raise DataError(
            f"train has {len(ids)} tokens: gradients.num_steps must be at most {len(ids) - 1}"
        )
    starts = rng.integers(0, len(ids) - num_steps, batch_size)
    indices = starts[:, None] + np.arange(num_steps + 1)
    windows: NDArray[np.int64] = np.asarray(ids)[indices].astype(np.int64)
    return windows


def train_briefly(
    network: Network,
    ids: Ids,
    params: GradientsParams,
    seed: int,
    callback: Callable[[int], None] = lambda _: None,
    draw: Callable[[], Mask | None] = lambda: None,
) -> list[float]:
    """Train a network, each window from the zero state, and return the loss of each minibatch, in
    nats per token.

    Equal seeds see equal minibatches. ``callback`` gets the number of trained minibatches, before
    the first and after each. ``draw`` draws the truncation (:meth:`Truncation.draw`). Training ends
    before a step whose loss or gradient is not finite: the list is then too short.
    """
    rng = np.random.default_rng(seed)
    network.start_training("adamw")
    losses: list[float] = []
    callback(0)
    for index in range(params.num_minibatches):
        window = draw_windows(ids, BATCH_SIZE, params.num_steps, rng)
        inputs, targets, state = window[:, :-1], window[:, 1:], network.initial_state(BATCH_SIZE)
        nll, _ = network.compute_gradients(inputs, targets, state, gradient_mask=draw())
        norm = float(network.clip_gradients(_GRAD_CLIP))
        loss = float(nll_array(nll).sum()) / inputs.size
        if not (math.isfinite(norm) and math.isfinite(loss)):
            break
        losses.append(loss)
        network.step(_LR * (1 - index / params.num_minibatches))
        callback(index + 1)
    return losses


def scale_recurrence(network: Network) -> None:
    """Scale W_hh from N(0, 0.01²) to a spectral radius near 1.

    By the circular law, the radius was 0.01 times the square root of its size.
    """
    w_hh = network.named_weights()["W_hh"]
    w_hh *= 1 / (0.01 * len(w_hh) ** 0.5)


@dataclass(frozen=True)
class Truncation:
    """A strategy of figure 8.7.1: "full", "regular" or "randomized".

    *Regular* cuts every ``length`` steps, at a random offset; *randomized* cuts each step with
    probability 1 / length and divides what continues by the probability of continuing (8.7.8).
    *Full* cuts nowhere, whatever its length.
    """

    strategy: str
    length: int

    def draw(self, num_steps: int, batch_size: int, rng: np.random.Generator) -> Mask | None:
        """Return the factors on what each step sends back, shape ``(num_steps, batch_size)``; None:
        all are 1."""
        if self.strategy == "full":
            return None
        if self.strategy == "regular":
            is_kept = (np.arange(num_steps) + rng.integers(self.length)) % self.length != 0
            return np.repeat(is_kept[:, None], batch_size, axis=1).astype(np.float32)
        return mask(rng, 1 - 1 / self.length, (num_steps, batch_size))


def truncations(lengths: Sequence[int]) -> list[Truncation]:
    """Return the regular and the randomized truncations of ``lengths``.

    There is no randomized one of length 1: its probability of continuing would be 0, outside (0,
    1].
    """
    regular = [Truncation("regular", length) for length in lengths]
    return regular + [Truncation("randomized", length) for length in lengths if length > 1]


def draw_gradients(
    network: Network,
    windows: NDArray[np.int64],
    truncation: Truncation,
    num_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Gradients of all weights over windows ``(B, T + 1)``, shape ``(num_draws, weights)``."""
    inputs, targets, state = windows[:, :-1], windows[:, 1:], network.initial_state(len(windows))
    draws = []
    for _ in range(num_draws):
        factors = truncation.draw(inputs.shape[1], len(windows), rng)
        network.compute_gradients(inputs, targets, state, gradient_mask=factors)
        gradients = [np.asarray(gradient, np.float64).reshape(-1) for gradient in network.gradients]
        draws.append(np.concatenate(gradients))
    return np.stack(draws)


def gradient_error(draws: Floats, full: Floats) -> tuple[float, float]:
    """Bias and spread of truncated gradients ``(draws, weights)``, relative to the full one's norm.

    The bias is the distance of the mean draw from the full gradient, the spread the root mean
    square distance of a draw from the mean. Chance alone gives a bias of about spread /
    sqrt(draws).
    """
    norm, mean = np.sqrt(np.square(full).sum()), draws.cumsum(0)[-1] / len(draws)
    bias = np.sqrt(np.square(mean - full).sum()) / norm
    return float(bias), float(np.sqrt(np.square(draws - draws.mean(0)).sum(1).mean()) / norm)


_CELLS: dict[str, Callable[..., nn.RNNCellBase]] = {
    "scratch": nn.RNNCell,
    "relu": partial(nn.RNNCell, nonlinearity="relu"),
    "gru": nn.GRUCell,
    "lstm": nn.LSTMCell,
}
_LEAST_NORM = 1e-100
"""Smaller norms count as 0: their squares are too small for all their digits."""


def gradient_norms(model: str, network: Network, ids: NDArray[np.int64]) -> Floats:
    """Norm of the gradient of the last step's loss by the state k steps before, k = 0 .. T - 1.

    ``model``: a key of :data:`MODELS`. ``ids``: ``(B, T + 1)``, inputs and the last target. Norms
    are means over batch rows. The state of an LSTM is its hidden state, not its memory cell.
    """
    cell, w_hq, b_q = _double_precision(model, network)
    inputs, targets = torch.from_numpy(ids[:, :-1].T), torch.from_numpy(ids[:, -1])
    state, states = None, []
    for one_hot in functional.one_hot(inputs, cell.input_size).double():
        state = cell(one_hot, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    loss = functional.cross_entropy(states[-1] @ w_hq + b_q, targets, reduction="sum")
    gradients = torch.autograd.grad(loss, states[::-1])
    norms = np.array([float(gradient.norm(dim=1).mean()) for gradient in gradients])
    return np.where(norms < _LEAST_NORM, 0.0, norms)


def _double_precision(model: str, network: Network) -> tuple[nn.RNNCellBase, Tensor, Tensor]:
    """The network's cell, and the weights ``(h, q)`` and biases of its output layer."""
    arrays = network.weight_copies().items()
    weights = {name: torch.from_numpy(array).double() for name, array in arrays}
    if model == "scratch":
        w_hq, b_q = weights["W_hq"], weights["b_q"]
        cell_weights = {
            "weight_ih": weights["W_xh"].T,
            "weight_hh": weights["W_hh"].T,
            "bias_ih": weights["b_h"],
            "bias_hh": torch.zeros_like(weights["b_h"]),
        }
    else:
        w_hq, b_q = weights["output.weight"].T, weights["output.bias"]
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        cell_weights = {name: weights[f"layers.0.{name}_l0"] for name in names}
    num_hiddens, vocab_size = w_hq.shape
    cell = _CELLS[model](vocab_size, num_hiddens, dtype=torch.float64)
    cell.load_state_dict(cell_weights)
    return cell, w_hq, b_q


@dataclass(frozen=True)
class Task:
    """The text and the settings that all measurements share."""

    params: GradientsParams
    train_ids: Ids
    val_ids: Ids
    vocab_size: int
    seed: int
    num_threads: int | None
    """Threads that share the measurements; None: chosen automatically."""

    @property
    def windows(self) -> NDArray[np.int64]:
        """The windows that gradients are measured on."""
        rng = np.random.default_rng(self.seed)
        return draw_windows(self.train_ids, _NUM_WINDOWS, self.params.num_steps, rng)

    def map(self, function: Callable[["Task", T], R], items: Iterable[T]) -> list[R]:
        """Return ``function(task, item)`` for each item, in order."""
        return list(imap(partial(function, self), items, self.num_threads))


def study_gradients(
    params: GradientsParams,
    train_ids: Ids,
    val_ids: Ids,
    vocab_size: int,
    seed: int,
    num_threads: int | None = None,
) -> tuple[Tables, dict[str, Any]]:
    """Measure gradients on a training stream and return tables and a summary.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's loss by
    the state k steps before, relative to k = 0; ``radius`` (model, minibatch, spectral_radius) of
    W_hh; ``truncation`` (strategy, length, bias, spread, standard_error); ``trained`` (strategy,
    length, seed, val_perplexity). They do not depend on the number of threads. Raises DataError if
    a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has too few tokens ({len(val_ids)}): perplexity needs at least 2")
    size = min(vocab_size, _MAX_VOCAB)
    train = keep_frequent(train_ids[:_MAX_TRAIN_TOKENS], size)
    val = keep_frequent(val_ids[:_MAX_VAL_TOKENS], size)
    task = Task(params, train, val, size, seed, num_threads)
    tables = _reach(task) | {"truncation": _truncation(task), "trained": _trained(task)}
    radii = {
        model: {"initial": float(radius.iloc[0]), "trained": float(radius.iloc[-1])}
        for model, radius in tables["radius"].groupby("model", sort=False)["spectral_radius"]
    }
    settings = params.model_dump(include={"num_hiddens", "num_steps", "num_minibatches"})
    return tables, {"spectral_radius": radii, "settings": settings | {"vocab_size": size}}


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Replace the tokens from ``num_kept`` on by ``<unk>``: tokens are sorted by falling
    frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach(task: Task) -> Tables:
    networks = [
        (name, build_network(_settings(task.params, name), task.vocab_size, task.seed))
        for name in MODELS
    ]
    measured = task.map(_reach_of_model, networks)
    norms = chain.from_iterable(norms for norms, _ in measured)
    radii = chain.from_iterable(radii for _, radii in measured)
    return {
        "reach": pd.DataFrame(norms, columns=["model", "moment", "k", "norm"]),
        "radius": pd.DataFrame(radii, columns=["model", "minibatch", "spectral_radius"]),
    }


def _reach_of_model(task: Task, model: tuple[str, Network]) -> tuple[list[Row], list[Row]]:
    """A model's rows of the tables ``reach`` and ``radius``.

    The radius is measured before training, after 1/16, 1/4 and 1/2 of the minibatches, and after
    training.
    """
    name, network = model
    weight = network.named_weights()["W_hh" if name == "scratch" else "layers.0.weight_hh_l0"]
    measured_at = {0, *(task.params.num_minibatches // part for part in (16, 4, 2, 1))}
    norms: list[Row] = []
    radii: list[Row] = []

    def measure_norms(moment: str) -> None:
        by_lag = gradient_norms(name, network, task.windows)
        norms.extend((name, moment, k, norm / by_lag[0]) for k, norm in enumerate(by_lag))

    def measure_radius(num_trained: int) -> None:
        if name in _UNGATED and num_trained in measured_at:
            radius = np.abs(np.linalg.eigvals(np.asarray(weight, np.float64))).max()
            radii.append((name, num_trained, radius))

    measure_norms("initial")
    train_briefly(network, task.train_ids, task.params, task.seed, measure_radius)
    measure_norms("trained")
    return norms, radii


def scratch_network(task: Task, seed: int) -> Network:
    """Return an untrained RNN from scratch."""
    return build_network(_settings(task.params, "scratch"), task.vocab_size, seed)


def _settings(params: GradientsParams, name: str) -> NetworkSettings:
    return network_settings(*MODELS[name], params.num_hiddens, params.num_steps)


def network_settings(
    model: str, activation: Literal["tanh", "relu"], num_hiddens: int, num_steps: int
) -> NetworkSettings:
    """Return the settings of a network of one layer that reads one-hot vectors."""
    return NetworkSettings(
        model=model,
        activation=activation,
        num_hiddens=num_hiddens,
        num_layers=1,
        num_heads=1,
        num_steps=num_steps,
        embedding="one_hot",
        embedding_size=None,
        tie_weights=False,
        dropout=0.0,
        engine="auto",
    )


def _truncation(task: Task) -> pd.DataFrame:
    cuts = truncations(task.params.lengths)
    rows = []
    for cut, (bias, spread) in zip(cuts, task.map(_truncation_error, cuts), strict=True):
        standard_error = spread / np.sqrt(task.params.num_draws)
        rows.append((cut.strategy, cut.length, bias, spread, standard_error))
    return pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])


def _truncation_error(task: Task, cut: Truncation) -> tuple[float, float]:
    """Return how far truncated gradients of an untrained network are from the full one."""
    params, windows, rng = task.params, task.windows, masks_rng(task.seed)
    model = scratch_network(task, task.seed)
    scale_recurrence(model)  # with the book's weights, almost nothing is sent back over a step
    draws = partial(draw_gradients, model, windows, rng=rng)
    full = draws(Truncation("full", params.num_steps), 1)[0]
    return gradient_error(draws(cut, params.num_draws), full)


def _trained(task: Task) -> pd.DataFrame:
    params = task.params
    strategies = [*truncations(params.trained_lengths), Truncation("full", params.num_steps)]
    items = list(product(strategies, range(task.seed, task.seed + params.num_trainings)))
    perplexities = zip(items, task.map(_perplexity_after, items), strict=True)
    rows = [(cut.strategy, cut.length, seed, value) for (cut, seed), value in perplexities]
    return pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])


def _perplexity_after(task: Task, item: tuple[Truncation, int]) -> float:
    """Return the perplexity on val of the RNN from scratch after a short training; nan if the
    training diverged.

    Equal seeds give equal initial weights and equal minibatches, whatever the truncation.
    """
    (cut, seed), num_steps = item, task.params.num_steps
    model = scratch_network(task, seed)
    draw = partial(cut.draw, num_steps, BATCH_SIZE, masks_rng(seed))
    losses = train_briefly(model, task.train_ids, task.params, seed, draw=draw)
    if len(losses) < task.params.num_minibatches:
        return float("nan")
    nll = stream_nll(model, task.val_ids)
    return perplexity(float(nll.sum()), len(nll))
