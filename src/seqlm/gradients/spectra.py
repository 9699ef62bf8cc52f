"""What carries a state from step to step: singular values and spectral radius of W_hh, and what clipping does."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.gradients.short_runs import Plan, Step, scale_recurrence, train_scratch
from seqlm.rnn.scratch import ScratchRNN


def spectral_radius(matrix: Tensor) -> float:
    """Return the largest absolute eigenvalue of a square matrix; nan where it holds one that is not finite."""
    if not bool(matrix.isfinite().all()):
        return float("nan")
    return float(torch.linalg.eigvals(matrix).abs().max())


def moments(num_minibatches: int) -> list[int]:
    """Return where a training is looked at: before it, after 1/16, 1/4 and 1/2 of its minibatches, and after it."""
    return sorted({0, *(num_minibatches // part for part in (16, 4, 2, 1))})


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of a matrix at some moments of a training."""

    radii: dict[int, float] = field(default_factory=dict)
    """Spectral radius by minibatches done."""
    singular_values: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    """Singular values by minibatches done, falling, shape ``(h,)``."""


@dataclass(frozen=True)
class SpectrumWatch:
    """Notes the spectrum of a matrix at some moments of a training; a :data:`~seqlm.gradients.short_runs.Callback`."""

    matrix: Tensor
    """A view that the training changes, shape ``(h, h)``."""
    at: list[int]
    found: Spectrum = field(default_factory=Spectrum)

    def __call__(self, num_done: int) -> None:
        """Note the spectrum if this is one of the moments."""
        if num_done in self.at:
            self.found.radii[num_done] = spectral_radius(self.matrix)
            self.found.singular_values[num_done] = torch.linalg.svdvals(self.matrix).double().numpy()


def clip_run(
    activation: Literal["tanh", "relu"],
    grad_clip: float | None,
    ids: NDArray[np.integer],
    vocab_size: int,
    num_hiddens: int,
    plan: Plan,
) -> list[Step]:
    """Train the RNN from scratch with SGD at rate 1, with a clip or without (exercise 8.5-4).

    W_hh starts with a spectral radius near 1: the weights of the book, N(0, 0.01), send
    back so little that no step comes near the clip.
    """
    model = ScratchRNN(vocab_size, num_hiddens, activation, torch.Generator().manual_seed(plan.seed))
    scale_recurrence(model)
    settled = Plan(plan.num_minibatches, plan.num_steps, plan.seed, "sgd", grad_clip)
    return train_scratch(model, ids, settled)
