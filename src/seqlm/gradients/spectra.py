"""What carries a state from step to step: singular values and spectral radius of W_hh, and its leading eigenvector.

LAPACK's values differ in their last digits between processors. The loops here compute in double precision and in a
fixed order.
"""

import math

import numpy as np

from seqlm.core.compiling import compiled
from seqlm.core.elementary import Floats, matmul

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


def eigenvector_alignment(matrix: Floats, vector: Floats, num_powers: int) -> Floats:
    """Return |cos| of the angle between M^k v and the leading eigenvector, k = 0 .. num_powers (exercise 8.7-1).

    ``matrix`` is symmetric and has one leading eigenvector, to which its powers turn every vector.
    """
    power = matrix
    for _ in range(_NUM_SQUARINGS):
        power = matmul(power, power)
        power /= np.abs(power).max()
    leading = _unit(power[:, np.argmax(np.diag(power))])
    cosines, current = [], _unit(vector)
    for _ in range(num_powers + 1):
        cosines.append(abs(float((current * leading).sum())))
        current = _unit(matmul(matrix, current[:, None])[:, 0])
    return np.array(cosines)


def _unit(vector: Floats) -> Floats:
    unit: Floats = vector / np.sqrt((vector * vector).sum())
    return unit
