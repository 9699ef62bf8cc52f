"""Everything that section 8.7 measures on one text, as tables.

Short training of small models, what truncated backpropagation does to their gradients, and how far
these reach.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
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
from seqlm.train.defaults import default_settings

Ids = NDArray[np.integer]
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
    windows: NDArray[np.int64] = ids[starts[:, None] + np.arange(num_steps + 1)].astype(np.int64)
    return windows


def train_briefly(
    network: Network,
    ids: Ids,
    params: GradientsParams,
    seed: int,
    draw: Callable[[], Mask | None] = lambda: None,
) -> Iterator[int]:
    """Train a network, each window from the zero state; yield the number of trained minibatches,
    before the first and after each.

    Equal seeds see equal minibatches. ``draw`` draws the truncation (:meth:`Truncation.draw`).
    Training ends before a step whose loss or gradient is not finite.
    """
    rng = np.random.default_rng(seed)
    network.start_training("adamw")
    yield 0
    for index in range(params.num_minibatches):
        window = draw_windows(ids, BATCH_SIZE, params.num_steps, rng)
        inputs, targets, state = window[:, :-1], window[:, 1:], network.initial_state(BATCH_SIZE)
        nll, _ = network.compute_gradients(inputs, targets, state, gradient_mask=draw())
        norm = float(network.clip_gradients(_GRAD_CLIP))
        if not math.isfinite(norm + float(nll_array(nll).sum())):
            return
        network.step(_LR * (1 - index / params.num_minibatches))
        yield index + 1


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
    cuts = [Truncation(*cut) for cut in product(("regular", "randomized"), lengths)]
    return [cut for cut in cuts if cut != Truncation("randomized", 1)]


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
        draws.append(np.concatenate(list(map(np.ravel, network.gradients)), dtype=np.float64))
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
    arrays = network.weight_copies().values()
    w_ih, w_hh, *biases, w_hq, b_q = (torch.from_numpy(array).double() for array in arrays)
    if model == "scratch":  # PyTorch has the transposes, and a second bias
        w_ih, w_hh, w_hq, biases = w_ih.T, w_hh.T, w_hq.T, [*biases, torch.zeros_like(biases[0])]
    cell = _CELLS[model](w_ih.shape[1], w_hh.shape[1], dtype=torch.float64)
    for parameter, weight in zip(cell.parameters(), (w_ih, w_hh, *biases), strict=True):
        parameter.data.copy_(weight)
    return cell, w_hq.T, b_q


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
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
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
    reach, radius = (
        pd.concat(frames, ignore_index=True)
        for frames in zip(*task.map(_reach_of_model, MODELS), strict=True)
    )
    radii = radius.groupby("model", sort=False)["spectral_radius"]
    settings = params.model_dump(include={"num_hiddens", "num_steps", "num_minibatches"})
    return {
        "reach": reach,
        "radius": radius,
        "truncation": _truncation(task),
        "trained": _trained(task),
    }, {
        "spectral_radius": radii.agg(initial="first", trained="last").to_dict("index"),
        "settings": settings | {"vocab_size": size},
    }


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Replace the tokens from ``num_kept`` on by ``<unk>``: tokens are sorted by falling
    frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach_of_model(task: Task, model: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A model's rows of the tables ``reach`` and ``radius``.

    The radius is measured before training, after 1/16, 1/4 and 1/2 of the minibatches, and after
    training.
    """
    network = small_network(task, model, task.seed)
    weight = network.named_weights()["W_hh" if model == "scratch" else "layers.0.weight_hh_l0"]
    measured_at = {0, *(task.params.num_minibatches // part for part in (16, 4, 2, 1))}
    norms, radii = {"initial": gradient_norms(model, network, task.windows)}, {}
    for num_trained in train_briefly(network, task.train_ids, task.params, task.seed):
        if model in _UNGATED and num_trained in measured_at:
            eigenvalues = np.linalg.eigvals(np.asarray(weight, np.float64))
            radii[num_trained] = np.abs(eigenvalues).max()
    norms["trained"] = gradient_norms(model, network, task.windows)
    reach = pd.concat(
        pd.DataFrame(
            {"model": model, "moment": moment, "k": range(len(lags)), "norm": lags / lags[0]}
        )
        for moment, lags in norms.items()
    )
    radius = {"model": model, "minibatch": radii.keys(), "spectral_radius": radii.values()}
    return reach, pd.DataFrame(radius).astype({"minibatch": int})  # also where there are none


def small_network(task: Task, name: str, seed: int) -> Network:
    """Return an untrained network of :data:`MODELS`."""
    settings = network_settings(*MODELS[name], task.params.num_hiddens, task.params.num_steps)
    return build_network(settings, task.vocab_size, seed)


def network_settings(
    model: str, activation: Literal["tanh", "relu"], num_hiddens: int, num_steps: int
) -> NetworkSettings:
    """Return the settings of a network of one layer that reads one-hot vectors."""
    settings = default_settings("scratch") | {
        "model": model,
        "activation": activation,
        "num_hiddens": num_hiddens,
        "num_steps": num_steps,
    }
    return NetworkSettings(**{name: settings[name] for name in NetworkSettings.model_fields})


def _truncation(task: Task) -> pd.DataFrame:
    cuts = truncations(task.params.lengths)
    errors = pd.DataFrame(task.map(_truncation_error, cuts), columns=["bias", "spread"])
    errors["standard_error"] = errors["spread"] / np.sqrt(task.params.num_draws)
    return pd.DataFrame(cuts).join(errors)


def _truncation_error(task: Task, cut: Truncation) -> tuple[float, float]:
    """Return how far truncated gradients of an untrained network are from the full one."""
    params, windows, rng = task.params, task.windows, masks_rng(task.seed)
    model = small_network(task, "scratch", task.seed)
    scale_recurrence(model)  # with the book's weights, almost nothing is sent back over a step
    draws = partial(draw_gradients, model, windows, rng=rng)
    full = draws(Truncation("full", params.num_steps), 1)[0]
    return gradient_error(draws(cut, params.num_draws), full)


def _trained(task: Task) -> pd.DataFrame:
    params = task.params
    strategies = [*truncations(params.trained_lengths), Truncation("full", params.num_steps)]
    items = list(product(strategies, range(task.seed, task.seed + params.num_trainings)))
    table = pd.DataFrame([asdict(cut) | {"seed": seed} for cut, seed in items])
    return table.assign(val_perplexity=task.map(_perplexity_after, items))


def _perplexity_after(task: Task, item: tuple[Truncation, int]) -> float:
    """Return the perplexity on val of the RNN from scratch after a short training; nan if the
    training diverged.

    Equal seeds give equal initial weights and equal minibatches, whatever the truncation.
    """
    (cut, seed), num_steps = item, task.params.num_steps
    model = small_network(task, "scratch", seed)
    draw = partial(cut.draw, num_steps, BATCH_SIZE, masks_rng(seed))
    *_, num_trained = train_briefly(model, task.train_ids, task.params, seed, draw)
    if num_trained < task.params.num_minibatches:
        return math.nan
    nll = stream_nll(model, task.val_ids)
    return perplexity(float(nll.sum()), len(nll))
