"""What carries a state from step to step: singular values and spectral radius of W_hh, and what clipping does."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.gradients.short_runs import ShortRun, StepStats, scale_recurrence, train_scratch
from seqlm.rnn.scratch import ScratchRNN


def spectral_radius(matrix: Tensor) -> float:
    """Return the largest absolute eigenvalue of a square matrix; nan if the matrix is not finite."""
    if not bool(matrix.isfinite().all()):
        return float("nan")
    return float(torch.linalg.eigvals(matrix).abs().max())


def moments(num_minibatches: int) -> list[int]:
    """Return when a training is measured: at its beginning, after 1/16, 1/4 and 1/2 of its minibatches, at its end."""
    return sorted({0, *(num_minibatches // part for part in (16, 4, 2, 1))})


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of a matrix after some minibatches of a training."""

    minibatch: int
    radius: float
    singular_values: NDArray[np.float64]
    """In descending order, shape ``(h,)``."""


@dataclass(frozen=True)
class SpectrumRecorder:
    """A callback of a training that records the spectrum of a matrix at some moments."""

    matrix: Tensor
    """A view that the training changes, shape ``(h, h)``."""
    at: list[int]
    spectra: list[Spectrum] = field(default_factory=list)

    def __call__(self, num_trained: int) -> None:
        """Record the spectrum if this is one of the moments."""
        if num_trained in self.at:
            values = torch.linalg.svdvals(self.matrix).double().numpy()
            self.spectra.append(Spectrum(num_trained, spectral_radius(self.matrix), values))


def clip_run(
    activation: Literal["tanh", "relu"],
    grad_clip: float | None,
    ids: NDArray[np.integer],
    vocab_size: int,
    num_hiddens: int,
    run: ShortRun,
) -> list[StepStats]:
    """Train the RNN from scratch with SGD at a learning rate of 1, with clipping or without (exercise 8.5-4).

    W_hh starts with a spectral radius near 1: with the book's weights, N(0, 0.01), gradients are too small to be
    clipped.
    """
    model = ScratchRNN(vocab_size, num_hiddens, activation, torch.Generator().manual_seed(run.seed))
    scale_recurrence(model)
    return train_scratch(model, ids, replace(run, optimizer="sgd", grad_clip=grad_clip))
