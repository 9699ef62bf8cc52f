"""Everything that section 8.7 measures on one text, as tables."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from seqlm.core.elementary import Floats
from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.core.threads import imap
from seqlm.gradients import truncation
from seqlm.gradients.settings import GradientsParams
from seqlm.gradients.truncation import Ids, Truncation
from seqlm.networks.building import build_network, compile_if_possible
from seqlm.networks.network import Network, stream_nll
from seqlm.networks.scratch import ScratchRNN
from seqlm.networks.settings import NetworkSettings

S = TypeVar("S")
T = TypeVar("T")
Tables = dict[str, pd.DataFrame]

# How much is measured.
_MAX_TRAIN_TOKENS, _MAX_VAL_TOKENS = 1_000_000, 20_000
"""Tokens that are read of longer splits: enough for small models, in no more time than a book takes."""
_NUM_WINDOWS = 64
"""Windows of ``gradients.num_steps`` tokens that reach and truncation are measured on."""
_MAX_VOCAB = 128
"""Only this many most frequent tokens are kept, the others count as ``<unk>``, to limit the cost."""
MODELS: dict[str, tuple[str, Literal["tanh", "relu"]]] = {
    "scratch": ("scratch", "tanh"), "relu": ("rnn", "relu"), "gru": ("gru", "tanh"), "lstm": ("lstm", "tanh"),
}  # fmt: skip
_UNGATED = ("scratch", "relu")
"""The states of GRU and LSTM also pass gates: no single matrix carries them."""


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
        return truncation.draw_windows(self.train_ids, _NUM_WINDOWS, self.params.num_steps, rng)

    def map(self, function: Callable[["Task", S], T], items: Iterable[S]) -> list[T]:
        """Return ``function(task, item)`` for each item, in order."""
        return list(imap(partial(function, self), items, self.num_threads))


def study_gradients(
    params: GradientsParams, train_ids: Ids, val_ids: Ids, vocab_size: int, seed: int, num_threads: int | None = None
) -> tuple[Tables, dict[str, Any]]:
    """Measure gradients on a training stream; val judges models after short training. Return tables and a summary.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's loss with respect to the
    state k steps before, relative to k = 0; ``radius`` (model, minibatch, spectral_radius) of W_hh; ``truncation``
    (strategy, length, bias, spread, standard_error); ``trained`` (strategy, length, seed, val_perplexity). They do not
    depend on the number of threads, by default as many as help. Raises DataError if a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has too few tokens ({len(val_ids)}): perplexity needs at least 2")
    size = min(vocab_size, _MAX_VOCAB)
    train, val = keep_frequent(train_ids[:_MAX_TRAIN_TOKENS], size), keep_frequent(val_ids[:_MAX_VAL_TOKENS], size)
    task = Task(params, train, val, size, seed, num_threads)
    tables, summary = _reach(task)
    tables |= _truncation(task) | {"trained": _trained(task)}
    means = tables["trained"].groupby("strategy")["val_perplexity"].mean().dropna()
    summary["val_perplexity"] = {str(name): float(value) for name, value in means.items()}
    settings = params.model_dump(include={"num_hiddens", "num_steps", "num_minibatches"})
    summary["settings"] = settings | {"vocab_size": size}
    return tables, summary


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Replace the tokens from ``num_kept`` on by ``<unk>``: tokens are sorted by falling frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach(task: Task) -> tuple[Tables, dict[str, Any]]:
    norms_at, radius, summary = [], [], {}
    # Not on threads: the framework draws weights with one generator for all of them.
    networks = [(name, untrained(task, name)) for name in MODELS]
    for model, (norms_by_moment, radii) in zip(MODELS, task.map(_reach_of_model, networks), strict=True):
        for moment, norms in norms_by_moment.items():
            columns = {"model": model, "moment": moment, "k": range(len(norms)), "norm": norms / norms[0]}
            norms_at.append(pd.DataFrame(columns))
        radius += [(model, minibatch, value) for minibatch, value in radii.items()]
        if radii:
            summary[model] = {"initial": radii[0], "trained": radii[max(radii)]}
    tables = {
        "reach": pd.concat(norms_at, ignore_index=True),
        "radius": pd.DataFrame(radius, columns=["model", "minibatch", "spectral_radius"]),
    }
    return tables, {"spectral_radius": summary}


def untrained(task: Task, name: str) -> Network:
    """Return one of the models whose reach is measured."""
    settings = network_settings(*MODELS[name], task.params.num_hiddens, task.params.num_steps)
    return build_network(settings, task.vocab_size, task.seed)


def _reach_of_model(task: Task, model: tuple[str, Network]) -> tuple[dict[str, Floats], dict[int, float]]:
    """Return a model's reach before and after its training, and the spectral radius of its W_hh.

    This is measured at the beginning, after 1/16, 1/4 and 1/2 of the minibatches, and at the end.
    """
    params, (name, network) = task.params, model
    weight = network.named_weights()["W_hh" if name == "scratch" else "layers.0.weight_hh_l0"]
    radii: dict[int, float] = {}

    def record(num_trained: int) -> None:
        if name in _UNGATED and num_trained in {0, *(params.num_minibatches // part for part in (16, 4, 2, 1))}:
            radii[num_trained] = float(np.abs(np.linalg.eigvals(weight.double().numpy())).max())

    initial = truncation.reach(name, network, task.windows)
    truncation.train_briefly(network, task.train_ids, params, task.seed, record)
    return {"initial": initial, "trained": truncation.reach(name, network, task.windows)}, radii


def scratch_network(task: Task, generator: torch.Generator) -> Network:
    """Return an untrained RNN from scratch, whose weights ``generator`` draws."""
    params = task.params
    network = ScratchRNN(task.vocab_size, params.num_hiddens, "tanh", generator)
    return compile_if_possible(network, network_settings("scratch", "tanh", params.num_hiddens, params.num_steps))


def network_settings(
    model: str, activation: Literal["tanh", "relu"], num_hiddens: int, num_steps: int
) -> NetworkSettings:
    """Return the settings of a network of one layer that reads one-hot vectors."""
    return NetworkSettings(
        model=model, activation=activation, num_hiddens=num_hiddens, num_layers=1, num_heads=1, num_steps=num_steps,
        embedding="one_hot", embedding_size=None, tie_weights=False, dropout=0.0, engine="auto",
    )  # fmt: skip


def _truncation(task: Task) -> Tables:
    rows, cuts = [], truncation.truncations(task.params.lengths)
    for cut, (bias, spread) in zip(cuts, task.map(_truncation_error, cuts), strict=True):
        rows.append((cut.strategy, cut.length, bias, spread, spread / np.sqrt(task.params.num_draws)))
    return {"truncation": pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])}


def _truncation_error(task: Task, cut: Truncation) -> tuple[float, float]:
    """Return how far truncated gradients of an untrained network are from the full one."""
    params, windows, generator = task.params, task.windows, torch.Generator().manual_seed(task.seed)
    model = scratch_network(task, generator)
    truncation.scale_recurrence(model)  # with the book's weights, almost nothing is sent back over a step
    draws = partial(truncation.gradient_draws, model, windows, generator=generator)
    full = draws(Truncation("full", params.num_steps), 1)[0]
    return truncation.gradient_error(draws(cut, params.num_draws), full)


def _trained(task: Task) -> pd.DataFrame:
    params = task.params
    strategies = [*truncation.truncations(params.trained_lengths), Truncation("full", params.num_steps)]
    items = list(product(strategies, range(task.seed, task.seed + params.num_trainings)))
    perplexities = zip(items, task.map(_perplexity_after, items), strict=True)
    rows = [(cut.strategy, cut.length, seed, value) for (cut, seed), value in perplexities]
    return pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])


def _perplexity_after(task: Task, item: tuple[Truncation, int]) -> float:
    """Return the perplexity on val of the RNN from scratch after a short training; nan if the training diverged.

    Equal seeds give equal initial weights and equal minibatches, whatever the truncation.
    """
    (cut, seed), num_steps = item, task.params.num_steps
    generator = torch.Generator().manual_seed(seed)
    model = scratch_network(task, generator)
    draw = partial(cut.draw, num_steps, truncation.BATCH_SIZE, generator)
    losses = truncation.train_briefly(model, task.train_ids, task.params, seed, draw=draw)
    if len(losses) < task.params.num_minibatches:
        return float("nan")
    nll = stream_nll(model, task.val_ids)
    return perplexity(float(nll.sum()), len(nll))
