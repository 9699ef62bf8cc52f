"""Everything that section 8.7 measures on one text, as tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.gradients.equations import eigenvector_alignment
from seqlm.gradients.information import mutual_information, shuffled_information
from seqlm.gradients.reach import Probe, gradient_reach, scratch_reach, train_probe
from seqlm.gradients.settings import GradientsParams
from seqlm.gradients.short_runs import Plan, Watch, draw_windows, scale_recurrence, train_scratch
from seqlm.gradients.spectra import SpectrumWatch, clip_run, moments
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

Ids = NDArray[np.integer]

_NUM_WINDOWS = 64
_NUM_POWERS = 30
_MATRIX_SIZE = 32
_NUM_DISTANCES = 40
_MOST_TRAIN_TOKENS, _MOST_VAL_TOKENS = 1_000_000, 20_000
"""What is read of longer splits: enough for small models, and no more time than for a book."""
_CLIPS: dict[str, float | None] = {"clip at 1": 1.0, "no clip": None}
_ACTIVATIONS: tuple[Literal["tanh", "relu"], ...] = ("tanh", "relu")


@dataclass(frozen=True)
class Task:
    """The text and the settings that all measurements share."""

    params: GradientsParams
    train_ids: Ids
    val_ids: Ids
    vocab_size: int
    seed: int

    @property
    def plan(self) -> Plan:
        """How the small models are trained."""
        return Plan(self.params.num_minibatches, self.params.num_steps, self.seed)


@dataclass(frozen=True)
class GradientStudy:
    """What was measured: see :func:`study_gradients`."""

    tables: dict[str, pd.DataFrame]
    summary: dict[str, Any]


def study_gradients(params: GradientsParams, train_ids: Ids, val_ids: Ids, vocab_size: int, seed: int) -> GradientStudy:
    """Measure gradients on a training stream; val judges the models that short trainings give.

    Tables and their columns: ``reach`` (model, moment, k, norm): the gradient of a step's
    loss by the state k steps before, as a share of that at k = 0; ``spectrum`` (model,
    minibatch, rank, singular_value) and ``radius`` (model, minibatch, spectral_radius,
    largest_singular_value) of W_hh; ``truncation`` (strategy, length, bias, spread,
    standard_error); ``convergence`` (strategy, draws, distance, standard_error); ``cost``
    (strategy, length, steps, megaflop, kilobytes); ``trained`` (strategy, length, seed,
    val_perplexity); ``unclipped`` (run, activation, clip, minibatch, norm, perplexity);
    ``information`` (distance, bits, shuffled, shuffled_deviation); ``alignment`` (power,
    cosine). Raises DataError where a split is too short.
    """
    if len(val_ids) < 2:
        raise DataError(f"val has {len(val_ids)} tokens: perplexity needs at least 2")
    kept = min(vocab_size, params.max_vocab)
    splits = [keep_frequent(train_ids[:_MOST_TRAIN_TOKENS], kept), keep_frequent(val_ids[:_MOST_VAL_TOKENS], kept)]
    task = Task(params, splits[0], splits[1], kept, seed)
    windows = draw_windows(task.train_ids, _NUM_WINDOWS, params.num_steps, np.random.default_rng(seed))
    tables, summary = _reach(task, windows)
    tables |= _truncation(task, windows) | {"cost": _cost(task), "trained": _trained(task)}
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


def _reach(task: Task, windows: torch.Tensor) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    params, parts, watches = task.params, [], {}
    for name in ("scratch", "relu", "gru", "lstm"):
        look, train, matrix = _subject(name, task, windows)
        watch = SpectrumWatch(matrix, moments(params.num_minibatches))
        found = {"initial": look()}
        # Gates change what carries the state of GRU and LSTM: no one matrix does.
        train(watch if name in ("scratch", "relu") else lambda _: None)
        found["trained"] = look()
        for moment, norms in found.items():
            shares = norms / norms[0]
            parts.append(pd.DataFrame({"model": name, "moment": moment, "k": range(len(norms)), "norm": shares}))
        if watch.radii:
            watches[name] = watch
    radii = {name: list(watch.radii.values()) for name, watch in watches.items()}
    radius = {name: {"initial": values[0], "trained": values[-1]} for name, values in radii.items()}
    return {"reach": pd.concat(parts, ignore_index=True)} | _spectra(watches), {"spectral_radius": radius}


def _subject(
    name: str, task: Task, windows: torch.Tensor
) -> tuple[Callable[[], NDArray[np.float64]], Callable[[Watch], object], torch.Tensor]:
    """Return how to measure a model's reach, how to train it, and a view of its recurrent matrix."""
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


def _spectra(watches: dict[str, SpectrumWatch]) -> dict[str, pd.DataFrame]:
    spectrum, radius = [], []
    for model, watch in watches.items():
        for minibatch, values in watch.singular_values.items():
            radius.append((model, minibatch, watch.radii[minibatch], values[0]))
            spectrum += [(model, minibatch, rank, value) for rank, value in enumerate(values, 1)]
    return {
        "spectrum": pd.DataFrame(spectrum, columns=["model", "minibatch", "rank", "singular_value"]),
        "radius": pd.DataFrame(radius, columns=["model", "minibatch", "spectral_radius", "largest_singular_value"]),
    }


def _truncation(task: Task, windows: torch.Tensor) -> dict[str, pd.DataFrame]:
    params, generator = task.params, torch.Generator().manual_seed(task.seed)
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
    params, rows = task.params, []
    for truncation in [*truncations(params.trained_lengths), Truncation("full", params.num_steps)]:
        for seed in range(task.seed, task.seed + params.num_trainings):
            value = trained_perplexity(
                truncation,
                task.train_ids,
                task.val_ids,
                task.vocab_size,
                params.num_hiddens,
                Plan(params.num_minibatches, params.num_steps, seed),
            )
            rows.append((truncation.strategy, truncation.length, seed, value))
    return pd.DataFrame(rows, columns=["strategy", "length", "seed", "val_perplexity"])


def _unclipped(task: Task) -> tuple[pd.DataFrame, dict[str, int]]:
    rows, diverged = [], {}
    for activation in _ACTIVATIONS:
        for clip, limit in _CLIPS.items():
            steps = clip_run(activation, limit, task.train_ids, task.vocab_size, task.params.num_hiddens, task.plan)
            run = f"{activation}, {clip}"
            for minibatch, step in enumerate(steps, 1):
                # Empty cells stand where a value is not finite.
                values = [value if np.isfinite(value) else None for value in (step.norm, perplexity(step.loss, 1))]
                rows.append((run, activation, clip, minibatch, *values))
            if steps and not steps[-1].is_finite:
                diverged[run] = len(steps)
    columns = ["run", "activation", "clip", "minibatch", "norm", "perplexity"]
    return pd.DataFrame(rows, columns=columns), diverged


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
