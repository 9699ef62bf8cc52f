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
from torch import nn
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
"""Tokens that are read of longer splits: enough for small models, in no more time than a book
takes."""
_NUM_WINDOWS = 64
"""Windows of ``gradients.num_steps`` tokens that reach and truncation are measured on."""
_MAX_VOCAB = 128
"""Only this many most frequent tokens are kept, the others count as ``<unk>``, to limit the
cost."""
MODELS: dict[str, tuple[str, Literal["tanh", "relu"]]] = {
    "scratch": ("scratch", "tanh"), "relu": ("rnn", "relu"), "gru": ("gru", "tanh"), "lstm": ("lstm", "tanh"),
}  # fmt: skip
_UNGATED = ("scratch", "relu")
"""The states of GRU and LSTM also pass gates: no single matrix carries them."""

# How the small models are trained.
BATCH_SIZE = 32
_LR, _GRAD_CLIP = 0.01, 1.0
"""Of AdamW, falling linearly to zero; the largest norm of all gradients together."""


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
    windows: NDArray[np.int64] = np.asarray(ids)[starts[:, None] + np.arange(num_steps + 1)].astype(
        np.int64
    )
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
        nll, _ = network.compute_gradients(inputs, targets, state, keep=draw())
        norm = float(network.clip_gradients(_GRAD_CLIP))
        loss = float(nll_array(nll).sum()) / inputs.size
        if not (math.isfinite(norm) and math.isfinite(loss)):
            break
        losses.append(loss)
        network.step(_LR * (1 - index / params.num_minibatches))
        callback(index + 1)
    return losses


def scale_recurrence(network: Network) -> None:
    """Scale W_hh, drawn from N(0, 0.01²), to a spectral radius near 1: h^(1/2) times 0.01 by the
    circular law."""
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
    """Return gradients of all weights over windows ``(B, T + 1)``, shape ``(num_draws,
    weights)``."""
    inputs, targets, state = windows[:, :-1], windows[:, 1:], network.initial_state(len(windows))
    gradients = []
    for _ in range(num_draws):
        factors = truncation.draw(inputs.shape[1], len(windows), rng)
        network.compute_gradients(inputs, targets, state, keep=factors)
        flat = [np.asarray(gradient, np.float64).reshape(-1) for gradient in network.gradients]
        gradients.append(np.concatenate(flat))
    return np.stack(gradients)


def gradient_error(draws: Floats, full: Floats) -> tuple[float, float]:
    """Compare draws of a truncated gradient, shape ``(draws, weights)``, with the full one, shape
    ``(weights,)``.

    Return the bias, the distance of the mean of all draws from the full gradient, and the spread,
    the root mean square distance of a draw from that mean. Both are relative to the norm of the
    full gradient. Chance alone gives a bias of about spread / sqrt(draws).
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
    """Return the norm of the gradient of the last step's loss with respect to the state k steps
    before, k = 0 .. T - 1.

    ``model`` is "scratch", "relu", "gru" or "lstm". ``ids``: ``(B, T + 1)``, inputs and the last
    target; norms are means over batch rows. For an LSTM it is the hidden state, not the memory
    cell.
    """
    weights = {
        name: torch.from_numpy(weight).double() for name, weight in network.weight_copies().items()
    }
    if model == "scratch":
        of_cell = {
            "weight_ih": weights["W_xh"].T,
            "weight_hh": weights["W_hh"].T,
            "bias_ih": weights["b_h"],
        }
        of_cell["bias_hh"] = torch.zeros_like(weights["b_h"])
        w_hq, b_q = weights["W_hq"], weights["b_q"]
    else:
        of_cell = {
            name: weights[f"layers.0.{name}_l0"]
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
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


@dataclass(frozen=True)
class Task:
    """The text and the settings that all measurements share."""

    params: GradientsParams
    train_ids: Ids
    val_ids: Ids
    vocab_size: int
    seed: int
    num_threads: int | None
    """How many threads share the measurements, each of a small model; None: as many as help."""

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
    """Measure gradients on a training stream; val judges models after short training. Return tables
    and a summary.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's loss with
    respect to the state k steps before, relative to k = 0; ``radius`` (model, minibatch,
    spectral_radius) of W_hh; ``truncation`` (strategy, length, bias, spread, standard_error);
    ``trained`` (strategy, length, seed, val_perplexity). They do not depend on the number of
    threads, by default as many as help. Raises DataError if a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has too few tokens ({len(val_ids)}): perplexity needs at least 2")
    size = min(vocab_size, _MAX_VOCAB)
    train, val = (
        keep_frequent(train_ids[:_MAX_TRAIN_TOKENS], size),
        keep_frequent(val_ids[:_MAX_VAL_TOKENS], size),
    )
    task = Task(params, train, val, size, seed, num_threads)
    tables = _reach(task) | {"truncation": _truncation(task), "trained": _trained(task)}
    radii = tables["radius"].groupby("model", sort=False)["spectral_radius"]
    summary = {
        model: {"initial": float(found.iloc[0]), "trained": float(found.iloc[-1])}
        for model, found in radii
    }
    settings = params.model_dump(include={"num_hiddens", "num_steps", "num_minibatches"})
    return tables, {"spectral_radius": summary, "settings": settings | {"vocab_size": size}}


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Replace the tokens from ``num_kept`` on by ``<unk>``: tokens are sorted by falling
    frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach(task: Task) -> Tables:
    networks = [
        (name, build_network(_settings(task.params, name), task.vocab_size, task.seed))
        for name in MODELS
    ]
    norms, radii = (
        list(chain(*rows)) for rows in zip(*task.map(_reach_of_model, networks), strict=True)
    )
    return {
        "reach": pd.DataFrame(norms, columns=["model", "moment", "k", "norm"]),
        "radius": pd.DataFrame(radii, columns=["model", "minibatch", "spectral_radius"]),
    }


def _reach_of_model(task: Task, model: tuple[str, Network]) -> tuple[list[Row], list[Row]]:
    """Return a model's rows of the tables ``reach`` and ``radius``.

    The radius is measured at the beginning, after 1/16, 1/4 and 1/2 of the minibatches, and at the
    end.
    """
    params, (name, network) = task.params, model
    weight = network.named_weights()["W_hh" if name == "scratch" else "layers.0.weight_hh_l0"]
    radii: list[Row] = []

    def record(num_trained: int) -> None:
        if name in _UNGATED and num_trained in {
            0,
            *(params.num_minibatches // part for part in (16, 4, 2, 1)),
        }:
            radii.append(
                (name, num_trained, np.abs(np.linalg.eigvals(np.asarray(weight, np.float64))).max())
            )

    norms = {"initial": reach(name, network, task.windows)}
    train_briefly(network, task.train_ids, params, task.seed, record)
    norms["trained"] = reach(name, network, task.windows)
    rows = (
        (name, moment, k, norm / found[0])
        for moment, found in norms.items()
        for k, norm in enumerate(found)
    )
    return list(rows), radii


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
        model=model, activation=activation, num_hiddens=num_hiddens, num_layers=1, num_heads=1, num_steps=num_steps,
        embedding="one_hot", embedding_size=None, tie_weights=False, dropout=0.0, engine="auto",
    )  # fmt: skip


def _truncation(task: Task) -> pd.DataFrame:
    cuts = truncations(task.params.lengths)
    errors = zip(cuts, task.map(_truncation_error, cuts), strict=True)
    rows = [
        (cut.strategy, cut.length, *found, found[1] / np.sqrt(task.params.num_draws))
        for cut, found in errors
    ]
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
