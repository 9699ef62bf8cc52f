"""What carries a state from step to step: singular values and spectral radius of W_hh, and what clipping does.

LAPACK's values differ in their last digits between processors. The loops here compute in double precision and in a
fixed order.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqlm.core.compiling import compiled
from seqlm.core.elementary import Floats, matmul
from seqlm.gradients.short_runs import Ids, ShortRun, StepStats, scale_recurrence, train_briefly
from seqlm.rnn.scratch import ScratchRNN

_NUM_SQUARINGS = 60
_MAX_SWEEPS = 60
_TOLERANCE = 1e-15


def spectral_radius(matrix: Floats) -> float:
    """Return the largest absolute eigenvalue of a square matrix; nan if the matrix is not finite.

    It is the limit of the norm of M^n to the power 1 / n (Gelfand 1941), with n = 2^60.
    """
    if not np.isfinite(matrix).all():
        return math.nan
    log_radius, power = 0.0, matrix
    for squarings in range(_NUM_SQUARINGS):
        norm = float(np.sqrt((power * power).sum()))
        if norm == 0:
            return 0.0
        log_radius += math.log(norm) / 2**squarings
        power = matmul(power / norm, power / norm)
    return math.exp(log_radius)


def singular_values(matrix: Floats) -> Floats:
    """Return the singular values of a matrix in descending order; nan if the matrix is not finite."""
    if not np.isfinite(matrix).all():
        return np.full(matrix.shape[1], np.nan)
    columns = np.array(matrix.T, order="C")
    _make_orthogonal(columns)
    return np.sort(np.sqrt((columns * columns).sum(1)))[::-1]


@compiled(error_model="numpy")
def _make_orthogonal(columns: Floats) -> None:
    """Rotate pairs of columns, given as rows, until all are orthogonal (one-sided Jacobi method, Hestenes 1958)."""
    for _ in range(_MAX_SWEEPS):
        has_rotated = False
        for p in range(len(columns) - 1):
            for q in range(p + 1, len(columns)):
                left, right, both = 0.0, 0.0, 0.0
                for k in range(columns.shape[1]):
                    left += columns[p, k] * columns[p, k]
                    right += columns[q, k] * columns[q, k]
                    both += columns[p, k] * columns[q, k]
                if abs(both) <= _TOLERANCE * math.sqrt(left * right):
                    continue
                has_rotated = True
                ratio = (right - left) / (2 * both)
                tangent = 1 / (abs(ratio) + math.sqrt(1 + ratio * ratio))
                tangent = tangent if ratio >= 0 else -tangent
                cosine = 1 / math.sqrt(1 + tangent * tangent)
                sine = cosine * tangent
                for k in range(columns.shape[1]):
                    a, b = columns[p, k], columns[q, k]
                    columns[p, k] = cosine * a - sine * b
                    columns[q, k] = sine * a + cosine * b
        if not has_rotated:
            return


def moments(num_minibatches: int) -> list[int]:
    """Return when a training is measured: at its beginning, after 1/16, 1/4 and 1/2 of its minibatches, at its end."""
    return sorted({0, *(num_minibatches // part for part in (16, 4, 2, 1))})


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of a matrix after some minibatches of a training."""

    minibatch: int
    radius: float
    singular_values: Floats
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
            matrix = self.matrix.double().numpy()
            self.spectra.append(Spectrum(num_trained, spectral_radius(matrix), singular_values(matrix)))


def clip_run(
    activation: Literal["tanh", "relu"],
    grad_clip: float | None,
    ids: Ids,
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
    return train_briefly(model, ids, replace(run, optimizer="sgd", grad_clip=grad_clip))
