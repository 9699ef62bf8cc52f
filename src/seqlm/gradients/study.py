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

from seqlm.core.devices import processes_that_learn
from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.core.processes import map_in_processes
from seqlm.gradients.equations import eigenvector_alignment
from seqlm.gradients.information import mutual_information, shuffled_information
from seqlm.gradients.reach import Probe, gradient_reach, scratch_reach, train_probe
from seqlm.gradients.settings import GradientsParams
from seqlm.gradients.short_runs import Callback, Plan, Step, draw_windows, scale_recurrence, train_scratch
from seqlm.gradients.spectra import Spectrum, SpectrumWatch, clip_run, moments
from seqlm.gradients.truncation import (
    Truncation,
    flop_count,
    gradient_draws,
    gradient_error,
    longest_stretch,
    stored_bytes,
    trained_perplexity,
    truncations,
)
from seqlm.rnn.scratch import ScratchRNN

S = TypeVar("S")
T = TypeVar("T")
Ids = NDArray[np.integer]

_NUM_WINDOWS = 64
_NUM_POWERS = 30
_MATRIX_SIZE = 32
_NUM_DISTANCES = 40
_MOST_TRAIN_TOKENS, _MOST_VAL_TOKENS = 1_000_000, 20_000
"""What is read of longer splits: enough for small models, and no more time than for a book."""
_CLIPS: dict[str, float | None] = {"clip at 1": 1.0, "no clip": None}
_ACTIVATIONS: tuple[Literal["tanh", "relu"], ...] = ("tanh", "relu")
_MODELS = ("scratch", "relu", "gru", "lstm")
_UNGATED = ("scratch", "relu")
"""Gates change what carries the state of GRU and LSTM: no one matrix does."""


@dataclass(frozen=True)
class Task:
    """The text and the settings that all measurements share."""

    params: GradientsParams
    train_ids: Ids
    val_ids: Ids
    vocab_size: int
    seed: int
    num_processes: int
    """How many share the measurements out, each a small model in one thread."""

    @property
    def windows(self) -> torch.Tensor:
        """The windows that gradients are measured on."""
        rng = np.random.default_rng(self.seed)
        return draw_windows(self.train_ids, _NUM_WINDOWS, self.params.num_steps, rng)

    @property
    def plan(self) -> Plan:
        """How the small models are trained."""
        return Plan(self.params.num_minibatches, self.params.num_steps, self.seed)


@dataclass(frozen=True)
class GradientStudy:
    """What was measured: see :func:`study_gradients`."""

    tables: dict[str, pd.DataFrame]
    summary: dict[str, Any]


def study_gradients(
    params: GradientsParams,
    train_ids: Ids,
    val_ids: Ids,
    vocab_size: int,
    seed: int,
    num_processes: int | None = None,
) -> GradientStudy:
    """Measure gradients on a training stream; val judges the models that short trainings give.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's
    loss by the state k steps before, as a share of that at k = 0; ``spectrum`` (model,
    minibatch, rank, singular_value) and ``radius`` (model, minibatch, spectral_radius,
    largest_singular_value) of W_hh; ``truncation`` (strategy, length, bias, spread,
    standard_error); ``convergence`` (strategy, draws, distance, standard_error); ``cost``
    (strategy, length, steps, megaflop, kilobytes); ``trained`` (strategy, length, seed,
    val_perplexity); ``unclipped`` (run, activation, clip, minibatch, norm, perplexity);
    ``information`` (distance, bits, shuffled, shuffled_deviation); ``alignment`` (power,
    cosine). They are the same for any number of processes, by default as many as help.
    Raises DataError where a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has {len(val_ids)} tokens: perplexity needs at least 2")
    kept = min(vocab_size, params.max_vocab)
    splits = [keep_frequent(train_ids[:_MOST_TRAIN_TOKENS], kept), keep_frequent(val_ids[:_MOST_VAL_TOKENS], kept)]
    task = Task(params, splits[0], splits[1], kept, seed, num_processes or processes_that_learn())
    tables, summary = _reach(task)
    tables |= _truncation(task) | {"cost": _cost(task), "trained": _trained(task)}
    tables["unclipped"], summary["diverged_at"] = _unclipped(task)
    tables |= {"information": _information(task), "alignment": _alignment(seed)}
    nearest = tables["information"].iloc[0]
    summary |= {"information_at_1": float(nearest["bits"]), "shuffled_at_1": float(nearest["shuffled"])}
    means = tables["trained"].groupby("strategy")["val_perplexity"].mean().dropna()
    summary["val_perplexity"] = {str(name): float(value) for name, value in means.items()}
    summary["settings"] = {
        "num_hiddens": params.num_hiddens,
        "num_steps": params.num_steps,
        "num_minibatches": params.num_minibatches,
        "vocab_size": kept,
    }
    return GradientStudy(tables, summary)


def keep_frequent(ids: Ids, num_kept: int) -> Ids:
    """Return a stream whose tokens from ``num_kept`` on are ``<unk>``: indices fall with frequency."""
    return np.where(ids < num_kept, ids, 0).astype(np.int64)


def _reach(task: Task) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    parts, spectra = [], {}
    for name, (found, spectrum) in zip(_MODELS, _shared(_reach_of, task, _MODELS), strict=True):
        for moment, norms in found.items():
            shares = norms / norms[0]
            parts.append(pd.DataFrame({"model": name, "moment": moment, "k": range(len(norms)), "norm": shares}))
        if name in _UNGATED:
            spectra[name] = spectrum
    radii = {name: list(spectrum.radii.values()) for name, spectrum in spectra.items()}
    radius = {name: {"initial": values[0], "trained": values[-1]} for name, values in radii.items()}
    return {"reach": pd.concat(parts, ignore_index=True)} | _spectra(spectra), {"spectral_radius": radius}


def _shared(function: Callable[[Task, S], T], task: Task, items: Iterable[S]) -> list[T]:
    """Return ``function(task, item)`` for each item, in order, worked out by the task's processes."""
    return map_in_processes(partial(function, task), items, task.num_processes)


def _reach_of(task: Task, name: str) -> tuple[dict[str, NDArray[np.float64]], Spectrum]:
    """Return a model's reach before and after its training, and the spectrum that its training was seen to have."""
    look, train, matrix = _subject(name, task)
    watch = SpectrumWatch(matrix, moments(task.params.num_minibatches))
    found = {"initial": look()}
    train(watch if name in _UNGATED else lambda _: None)
    return found | {"trained": look()}, watch.found


def _subject(
    name: str, task: Task
) -> tuple[Callable[[], NDArray[np.float64]], Callable[[Callback], object], torch.Tensor]:
    """Return how to measure a model's reach, how to train it, and a view of its recurrent matrix."""
    windows = task.windows
    if name == "scratch":
        generator = torch.Generator().manual_seed(task.seed)
        model = ScratchRNN(task.vocab_size, task.params.num_hiddens, "tanh", generator)
        return (
            lambda: scratch_reach(model, windows),
            lambda watch: train_scratch(model, task.train_ids, task.plan, watch=watch),
            model.named_weights()["W_hh"],
        )
    probe = Probe(name, task.vocab_size, task.params.num_hiddens, task.seed)  # type: ignore[arg-type]
    return (
        lambda: gradient_reach(probe, windows),
        lambda watch: train_probe(probe, task.train_ids, task.plan, watch),
        probe.cell.weight_hh.detach(),
    )


def _spectra(found: dict[str, Spectrum]) -> dict[str, pd.DataFrame]:
    rows, radius = [], []
    for model, spectrum in found.items():
        for minibatch, values in spectrum.singular_values.items():
            radius.append((model, minibatch, spectrum.radii[minibatch], values[0]))
            rows += [(model, minibatch, rank, value) for rank, value in enumerate(values, 1)]
    return {
        "spectrum": pd.DataFrame(rows, columns=["model", "minibatch", "rank", "singular_value"]),
        "radius": pd.DataFrame(radius, columns=["model", "minibatch", "spectral_radius", "largest_singular_value"]),
    }


def _truncation(task: Task) -> dict[str, pd.DataFrame]:
    params, windows, generator = task.params, task.windows, torch.Generator().manual_seed(task.seed)
    model = ScratchRNN(task.vocab_size, params.num_hiddens, "tanh", generator)
    # The book's weights are so small that nothing comes back over a step.
    scale_recurrence(model)
    full = gradient_draws(model, windows, Truncation("full", params.num_steps), 1, generator)[0]
    rows, runs = [], []
    for truncation in truncations(params.lengths):
        error = gradient_error(gradient_draws(model, windows, truncation, params.num_draws, generator), full)
        rows.append((truncation.strategy, truncation.length, error.bias, error.spread, error.standard_error))
        if truncation.length == max(params.lengths):
            draws = np.arange(1, params.num_draws + 1)
            expected = error.spread / np.sqrt(draws)
            columns = {"draws": draws, "distance": error.running, "standard_error": expected}
            runs.append(pd.DataFrame({"strategy": truncation.strategy} | columns))
    return {
        "truncation": pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"]),
        "convergence": pd.concat(runs, ignore_index=True),
    }


def _cost(task: Task) -> pd.DataFrame:
    params, rows = task.params, []
    for truncation in [*truncations(params.lengths), Truncation("full", params.num_steps)]:
        steps = longest_stretch(truncation, params.num_steps, torch.Generator().manual_seed(task.seed))
        flop = flop_count(truncation, params.num_steps, params.num_hiddens, task.vocab_size)
        kept = stored_bytes(steps, params.num_hiddens, task.vocab_size)
        rows.append((truncation.strategy, truncation.length, steps, flop / 1e6, kept / 1e3))
    return pd.DataFrame(rows, columns=["strategy", "length", "steps", "megaflop", "kilobytes"])


def _trained(task: Task) -> pd.DataFrame:
    params = task.params
    strategies = [*truncations(params.trained_lengths), Truncation("full", params.num_steps)]
    trainings = list(product(strategies, range(task.seed, task.seed + params.num_trainings)))
    found = zip(trainings, _shared(_perplexity_after, task, trainings), strict=True)
    rows = [(truncation.strategy, truncation.length, seed, value) for (truncation, seed), value in found]
    return pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])


def _perplexity_after(task: Task, training: tuple[Truncation, int]) -> float:
    """Return the perplexity on val after a training with some truncation, from some seed."""
    truncation, seed = training
    plan = Plan(task.params.num_minibatches, task.params.num_steps, seed)
    return trained_perplexity(truncation, task.train_ids, task.val_ids, task.vocab_size, task.params.num_hiddens, plan)


def _unclipped(task: Task) -> tuple[pd.DataFrame, dict[str, int]]:
    rows, diverged, runs = [], {}, list(product(_ACTIVATIONS, _CLIPS))
    for (activation, clip), steps in zip(runs, _shared(_run_of_clip, task, runs), strict=True):
        run = f"{activation}, {clip}"
        for minibatch, step in enumerate(steps, 1):
            # Empty cells stand where a value is not finite.
            values = [value if np.isfinite(value) else None for value in (step.norm, perplexity(step.loss, 1))]
            rows.append((run, activation, clip, minibatch, *values))
        if steps and not steps[-1].is_finite:
            diverged[run] = len(steps)
    columns = ["run", "activation", "clip", "minibatch", "norm", "perplexity"]
    return pd.DataFrame(rows, columns=columns), diverged


def _run_of_clip(task: Task, run: tuple[Literal["tanh", "relu"], str]) -> list[Step]:
    activation, clip = run
    return clip_run(activation, _CLIPS[clip], task.train_ids, task.vocab_size, task.params.num_hiddens, task.plan)


def _information(task: Task) -> pd.DataFrame:
    farthest = min(task.params.max_distance, len(task.train_ids) - 2)
    distances = np.unique(np.geomspace(1, farthest, _NUM_DISTANCES).round().astype(int))
    places = [int(distance) for distance in distances]
    bits = mutual_information(task.train_ids, places, task.vocab_size)
    shuffled, deviation = shuffled_information(
        task.train_ids, places, task.vocab_size, task.params.num_shuffles, task.seed
    )
    # Chance varies as much at every distance: together the shuffles tell more of it.
    pooled = float(np.sqrt(np.mean(np.square(deviation))))
    columns = {"distance": distances, "bits": bits - shuffled}
    return pd.DataFrame(columns | {"shuffled": shuffled, "shuffled_deviation": pooled})


def _alignment(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(_MATRIX_SIZE, _MATRIX_SIZE))
    cosines = eigenvector_alignment(square @ square.T, rng.normal(size=_MATRIX_SIZE), _NUM_POWERS)
    return pd.DataFrame({"power": range(len(cosines)), "cosine": cosines})
