"""Everything that section 8.7 measures on one text, as tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from seqlm.gradients.equations import eigenvector_alignment
from seqlm.gradients.reach import (
    Probe,
    draw_windows,
    gradient_reach,
    mutual_information,
    train_probe,
    truncation_errors,
)
from seqlm.params.gradients import GradientsParams
from seqlm.rnn.scratch import ScratchRNN

KINDS = ("tanh", "relu", "gru", "lstm")
_NUM_WINDOWS = 64
_NUM_POWERS = 30
_MATRIX_SIZE = 32


@dataclass(frozen=True)
class GradientStudy:
    """What was measured: see :func:`study_gradients`."""

    tables: dict[str, pd.DataFrame]
    metrics: dict[str, Any]


def study_gradients(params: GradientsParams, ids: NDArray[np.integer], vocab_size: int, seed: int) -> GradientStudy:
    """Measure gradients on a training stream.

    Tables: ``reach`` (model, moment, k, norm): the gradient of a step's loss by the state
    k steps before, as a share of that at k = 0; ``truncation`` (strategy, length, bias,
    spread, standard_error); ``information`` (distance, bits); ``alignment`` (power, cosine).
    """
    rng = np.random.default_rng(seed)
    windows = draw_windows(ids, _NUM_WINDOWS, params.num_steps, rng)
    reach, radii = _reach(params, ids, windows, vocab_size, seed)
    scratch = ScratchRNN(vocab_size, params.num_hiddens, "tanh", torch.Generator().manual_seed(seed))
    with torch.no_grad():
        # The book's weights are so small that nothing comes back over a step: scale them to a spectral radius near 1.
        scratch.named_weights()["W_hh"].mul_(1 / (0.01 * params.num_hiddens**0.5))
    errors = truncation_errors(scratch, windows, params.lengths, params.num_draws, seed)
    distances = np.unique(np.geomspace(1, min(params.max_distance, len(ids) - 2), 40).round().astype(int))
    square = rng.normal(size=(_MATRIX_SIZE, _MATRIX_SIZE))
    alignment = eigenvector_alignment(square + square.T, rng.normal(size=_MATRIX_SIZE), _NUM_POWERS)
    bits = mutual_information(ids, [int(distance) for distance in distances], vocab_size)
    tables = {
        "reach": reach,
        "truncation": pd.DataFrame(errors, columns=["strategy", "length", "bias", "spread", "standard_error"]),
        "information": pd.DataFrame({"distance": distances, "bits": bits}),
        "alignment": pd.DataFrame({"power": range(len(alignment)), "cosine": alignment}),
    }
    return GradientStudy(tables, {"spectral_radius": radii, "information_at_1": float(bits[0])})


def _reach(
    params: GradientsParams, ids: NDArray[np.integer], windows: torch.Tensor, vocab_size: int, seed: int
) -> tuple[pd.DataFrame, dict[str, dict[str, float]]]:
    parts, radii = [], {}
    for kind in KINDS:
        probe = Probe(kind, vocab_size, params.num_hiddens, seed)
        found = {"initial": _look(probe, kind, windows)}
        train_probe(probe, ids, params.num_minibatches, params.num_steps, seed)
        found["trained"] = _look(probe, kind, windows)
        for moment, (norms, _) in found.items():
            shares = norms / norms[0]
            parts.append(pd.DataFrame({"model": kind, "moment": moment, "k": range(len(norms)), "norm": shares}))
        if found["initial"][1] is not None:
            radii[kind] = {moment: float(radius or 0) for moment, (_, radius) in found.items()}
    return pd.concat(parts, ignore_index=True), radii


def _look(probe: Probe, kind: str, windows: torch.Tensor) -> tuple[NDArray[np.float64], float | None]:
    """Return a probe's reach and, where one matrix carries its state, that matrix's spectral radius."""
    if kind not in ("tanh", "relu"):
        return gradient_reach(probe, windows), None
    radius = torch.linalg.eigvals(probe.cell.weight_hh.detach()).abs().max()
    return gradient_reach(probe, windows), float(radius)
