"""Everything that section 8.7 measures on one text, as tables."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, geomspace, matmul
from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.core.threads import imap
from seqlm.gradients.reach import mutual_information, reach, shuffled_information
from seqlm.gradients.settings import GradientsParams
from seqlm.gradients.spectra import eigenvector_alignment, singular_values, spectral_radius
from seqlm.gradients.truncation import (
    BATCH_SIZE,
    GradientErrorStats,
    Ids,
    ShortRun,
    StepStats,
    Truncation,
    draw_windows,
    gradient_draws,
    gradient_error,
    scale_recurrence,
    stored_bytes,
    train_briefly,
    truncations,
)
from seqlm.rnn.array_network import stream_nll
from seqlm.rnn.building import build_network, compile_if_possible
from seqlm.rnn.network import Network
from seqlm.rnn.scratch import ScratchRNN
from seqlm.rnn.settings import NetworkSettings

S = TypeVar("S")
T = TypeVar("T")
Tables = dict[str, pd.DataFrame]

_NUM_WINDOWS = 64
_NUM_POWERS = 30
_MATRIX_SIZE = 32
_NUM_DISTANCES = 40
_MAX_TRAIN_TOKENS, _MAX_VAL_TOKENS = 1_000_000, 20_000
"""What is read of longer splits: enough for small models, in no more time than a book takes."""
_CLIPS: dict[str, float | None] = {"clip at 1": 1.0, "no clip": None}
_ACTIVATIONS: tuple[Literal["tanh", "relu"], ...] = ("tanh", "relu")
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
        return draw_windows(self.train_ids, _NUM_WINDOWS, self.params.num_steps, rng)

    @property
    def run(self) -> ShortRun:
        """How the small models are trained."""
        return ShortRun(self.params.num_minibatches, self.params.num_steps, self.seed)

    def map(self, function: Callable[["Task", S], T], items: Iterable[S]) -> list[T]:
        """Return ``function(task, item)`` for each item, in order."""
        return list(imap(partial(function, self), items, self.num_threads))


def study_gradients(
    params: GradientsParams, train_ids: Ids, val_ids: Ids, vocab_size: int, seed: int, num_threads: int | None = None
) -> tuple[Tables, dict[str, Any]]:
    """Measure gradients on a training stream; val judges the models of short trainings. Return tables and a summary.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's loss with respect to the
    state k steps before, relative to k = 0; ``spectrum`` (model, minibatch, rank, singular_value) and ``radius``
    (model, minibatch, spectral_radius, largest_singular_value) of W_hh; ``truncation`` (strategy, length, bias, spread,
    standard_error); ``convergence`` (strategy, draws, distance, standard_error); ``cost`` (strategy, length, steps,
    megaflop, kilobytes); ``trained`` (strategy, length, seed, val_perplexity); ``unclipped`` (run, activation, clip,
    minibatch, norm, perplexity); ``information`` (distance, bits, shuffled, shuffled_deviation); ``alignment`` (power,
    cosine).
    They do not depend on the number of threads, by default as many as help.
    Raises DataError if a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has too few tokens ({len(val_ids)}): perplexity needs at least 2")
    size = min(vocab_size, params.max_vocab)
    train, val = keep_frequent(train_ids[:_MAX_TRAIN_TOKENS], size), keep_frequent(val_ids[:_MAX_VAL_TOKENS], size)
    task = Task(params, train, val, size, seed, num_threads)
    tables, summary = _reach(task)
    tables |= _truncation(task) | {"cost": _cost(task), "trained": _trained(task)}
    tables["unclipped"], summary["diverged_at"] = _unclipped(task)
    tables |= {"information": _information(task), "alignment": _alignment(seed)}
    nearest = tables["information"].iloc[0]
    summary |= {"information_at_1": float(nearest["bits"]), "shuffled_at_1": float(nearest["shuffled"])}
    means = tables["trained"].groupby("strategy")["val_perplexity"].mean().dropna()
    summary["val_perplexity"] = {str(name): float(value) for name, value in means.items()}
    settings = params.model_dump(include={"num_hiddens", "num_steps", "num_minibatches"})
    summary["settings"] = settings | {"vocab_size": size}
    return tables, summary


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Replace the tokens from ``num_kept`` on by ``<unk>``: tokens are sorted by falling frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach(task: Task) -> tuple[Tables, dict[str, Any]]:
    norms_at, spectrum, radius, summary = [], [], [], {}
    # Not on threads: the framework draws weights with one generator for all of them.
    networks = [(name, untrained(task, name)) for name in MODELS]
    for model, (norms_by_moment, spectra) in zip(MODELS, task.map(_reach_of_model, networks), strict=True):
        for moment, norms in norms_by_moment.items():
            columns = {"model": model, "moment": moment, "k": range(len(norms)), "norm": norms / norms[0]}
            norms_at.append(pd.DataFrame(columns))
        for minibatch, (its_radius, values) in spectra.items():
            radius.append((model, minibatch, its_radius, values[0]))
            spectrum += [(model, minibatch, rank, value) for rank, value in enumerate(values, 1)]
        if spectra:
            summary[model] = {"initial": spectra[0][0], "trained": spectra[max(spectra)][0]}
    tables = {
        "reach": pd.concat(norms_at, ignore_index=True),
        "spectrum": pd.DataFrame(spectrum, columns=["model", "minibatch", "rank", "singular_value"]),
        "radius": pd.DataFrame(radius, columns=["model", "minibatch", "spectral_radius", "largest_singular_value"]),
    }
    return tables, {"spectral_radius": summary}


def untrained(task: Task, name: str) -> Network:
    """Return one of the models whose reach is measured."""
    settings = network_settings(*MODELS[name], task.params.num_hiddens, task.params.num_steps)
    return build_network(settings, task.vocab_size, task.seed)


def _reach_of_model(
    task: Task, model: tuple[str, Network]
) -> tuple[dict[str, Floats], dict[int, tuple[float, Floats]]]:
    """Return a model's reach before and after its training, and the radius and singular values of its W_hh.

    These are measured at the beginning, after 1/16, 1/4 and 1/2 of the minibatches, and at the end.
    """
    params, (name, network) = task.params, model
    weight = network.named_weights()["W_hh" if name == "scratch" else "layers.0.weight_hh_l0"]
    spectra: dict[int, tuple[float, Floats]] = {}

    def record(num_trained: int) -> None:
        if name in _UNGATED and num_trained in {0, *(params.num_minibatches // part for part in (16, 4, 2, 1))}:
            matrix = weight.double().numpy()
            spectra[num_trained] = spectral_radius(matrix), singular_values(matrix)

    initial = reach(name, network, task.windows)
    train_briefly(network, task.train_ids, task.run, record)
    return {"initial": initial, "trained": reach(name, network, task.windows)}, spectra


def scratch_network(task: Task, generator: torch.Generator, activation: Literal["tanh", "relu"] = "tanh") -> Network:
    """Return an untrained RNN from scratch, whose weights ``generator`` draws."""
    num_hiddens = task.params.num_hiddens
    network = ScratchRNN(task.vocab_size, num_hiddens, activation, generator)
    return compile_if_possible(network, network_settings("scratch", activation, num_hiddens, task.params.num_steps))


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


def _truncation(task: Task) -> Tables:
    rows, convergence = [], []
    strategies = truncations(task.params.lengths)
    for truncation, error in zip(strategies, task.map(_truncation_error, strategies), strict=True):
        rows.append((truncation.strategy, truncation.length, error.bias, error.spread, error.standard_error))
        if truncation.length == max(task.params.lengths):
            draws = np.arange(1, task.params.num_draws + 1)
            columns = {"draws": draws, "distance": error.running, "standard_error": error.spread / np.sqrt(draws)}
            convergence.append(pd.DataFrame({"strategy": truncation.strategy} | columns))
    return {
        "truncation": pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"]),
        "convergence": pd.concat(convergence, ignore_index=True),
    }


def _truncation_error(task: Task, truncation: Truncation) -> GradientErrorStats:
    """Return how far truncated gradients of an untrained network are from the full one."""
    params, windows, generator = task.params, task.windows, torch.Generator().manual_seed(task.seed)
    model = scratch_network(task, generator)
    scale_recurrence(model)  # with the book's weights, almost nothing is sent back over a step
    full = gradient_draws(model, windows, Truncation("full", params.num_steps), 1, generator)[0]
    return gradient_error(gradient_draws(model, windows, truncation, params.num_draws, generator), full)


def _cost(task: Task) -> pd.DataFrame:
    params, rows = task.params, []
    for truncation in [*truncations(params.lengths), Truncation("full", params.num_steps)]:
        steps = truncation.longest_stretch(params.num_steps, torch.Generator().manual_seed(task.seed))
        megaflop = truncation.flop_count(params.num_steps, params.num_hiddens, task.vocab_size) / 1e6
        kilobytes = stored_bytes(steps, params.num_hiddens, task.vocab_size) / 1e3
        rows.append((truncation.strategy, truncation.length, steps, megaflop, kilobytes))
    return pd.DataFrame(rows, columns=["strategy", "length", "steps", "megaflop", "kilobytes"])


def _trained(task: Task) -> pd.DataFrame:
    params = task.params
    strategies = [*truncations(params.trained_lengths), Truncation("full", params.num_steps)]
    trainings = list(product(strategies, range(task.seed, task.seed + params.num_trainings)))
    perplexities = task.map(_perplexity_after, trainings)
    rows = [
        (truncation.strategy, truncation.length, seed, value)
        for (truncation, seed), value in zip(trainings, perplexities, strict=True)
    ]
    return pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])


def _perplexity_after(task: Task, training: tuple[Truncation, int]) -> float:
    """Return the perplexity on val of the RNN from scratch after a short training; nan if the training diverged.

    Equal seeds give equal initial weights and equal minibatches, whatever the truncation.
    """
    (truncation, seed), num_steps = training, task.params.num_steps
    generator = torch.Generator().manual_seed(seed)
    model = scratch_network(task, generator)
    steps = train_briefly(
        model,
        task.train_ids,
        replace(task.run, seed=seed),
        draw=lambda: truncation.draw(num_steps, BATCH_SIZE, generator),
    )
    if steps and not steps[-1].is_finite:
        return float("nan")
    nll = stream_nll(model.arrays, task.val_ids)
    return perplexity(float(nll.sum()), len(nll))


def _unclipped(task: Task) -> tuple[pd.DataFrame, dict[str, int]]:
    rows, diverged_at, runs = [], {}, list(product(_ACTIVATIONS, _CLIPS))
    for (activation, clip), steps in zip(runs, task.map(_clip_run, runs), strict=True):
        run = f"{activation}, {clip}"
        for minibatch, step in enumerate(steps, 1):
            # Values that are not finite become empty cells.
            values = [value if np.isfinite(value) else None for value in (step.norm, perplexity(step.loss, 1))]
            rows.append((run, activation, clip, minibatch, *values))
        if steps and not steps[-1].is_finite:
            diverged_at[run] = len(steps)
    columns = ["run", "activation", "clip", "minibatch", "norm", "perplexity"]
    return pd.DataFrame(rows, columns=columns), diverged_at


def _clip_run(task: Task, run: tuple[Literal["tanh", "relu"], str]) -> list[StepStats]:
    """Train the RNN from scratch with SGD at a learning rate of 1, with clipping or without (exercise 8.5-4).

    W_hh starts with a spectral radius near 1: with the book's weights, N(0, 0.01²), gradients are too small to be
    clipped.
    """
    activation, clip = run
    generator = torch.Generator().manual_seed(task.seed)
    model = scratch_network(task, generator, activation)
    scale_recurrence(model)
    return train_briefly(model, task.train_ids, replace(task.run, optimizer="sgd", grad_clip=_CLIPS[clip]))


def _information(task: Task) -> pd.DataFrame:
    farthest, num_shuffles = min(task.params.max_distance, len(task.train_ids) - 2), task.params.num_shuffles
    distances = np.unique(geomspace(farthest, _NUM_DISTANCES).round().astype(int)).tolist()
    bits = mutual_information(task.train_ids, distances, task.vocab_size)
    shuffled, deviation = shuffled_information(task.train_ids, distances, task.vocab_size, num_shuffles, task.seed)
    # Chance varies equally at every distance: pooled, the shuffles say more about it.
    pooled = float(np.sqrt(np.mean(np.square(deviation))))
    columns = {"distance": distances, "bits": bits - shuffled}
    return pd.DataFrame(columns | {"shuffled": shuffled, "shuffled_deviation": pooled})


def _alignment(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(_MATRIX_SIZE, _MATRIX_SIZE))
    cosines = eigenvector_alignment(matmul(square, square.T), rng.normal(size=_MATRIX_SIZE), _NUM_POWERS)
    return pd.DataFrame({"power": range(len(cosines)), "cosine": cosines})
