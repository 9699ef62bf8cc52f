"""exp, log and matrix products in double precision: the same bits on every processor.

NumPy's exp, log and power differ in their last bits between processors with AVX-512 and others, and its products
between makers. The functions here use additions, multiplications and divisions only, each rounded as IEEE 754
prescribes, in an order that the source fixes. NumPy's own sums, square roots and divisions need no replacement.

Compiled functions of any folder may call ``exp_of`` and ``log_of``: :mod:`seqlm.core.compiling` hashes this module for
every folder.
"""

import math

import numpy as np
from numba import njit
from numpy import float64, int64
from numpy.typing import ArrayLike, NDArray

from seqlm.core.compiling import compiled

Floats = NDArray[np.float64]

# ln 2 in two parts: the first has 32 bits, so its product with the exponent of a number is exact.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_LOG2_E = 1.4426950408889634
_BITS, _BIAS = 52, 1023
"""Of the mantissa; of the exponent."""
_ROUNDER = 1.5 * 2.0**_BITS
"""Adding it rounds to an integer, which the sum has in its last bits."""
_ROUNDER_BITS = 0x4338000000000000
_HIGHEST, _LOWEST = 710.0, -746.0
"""Beyond these, exp is infinity or 0."""
# Taylor's series: on [-ln 2 / 2, ln 2 / 2] the first term left out is 4e-18 of the sum.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1 / math.factorial(n) for n in range(2, 14))
# log (1 + f) = 2 artanh s with s = f / (2 + f): the first term left out is 6e-19 of the sum.
_L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10 = (2 / (2 * n + 1) for n in range(1, 11))
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_SMALLEST_NORMAL, _SUBNORMAL_SHIFT = 2.0**-1022, 54


@njit(error_model="numpy")
def exp_of(x: float64) -> float:
    """Return e to the power x, to within a unit in the last place."""
    inside = min(max(x, _LOWEST), _HIGHEST)
    shifted = float64(inside * _LOG2_E + _ROUNDER)
    n, exponent = shifted - _ROUNDER, shifted.view(int64) - _ROUNDER_BITS
    r = (inside - n * _LN2_HIGH) - n * _LN2_LOW
    rest = _E8 + r * (_E9 + r * (_E10 + r * (_E11 + r * (_E12 + r * _E13))))
    rest = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * rest)))))
    # The power of two comes in two factors, because it may be beyond the range of numbers when the result is not.
    half = exponent >> 1
    first = int64((half + _BIAS) << _BITS).view(float64)
    second = int64((exponent - half + _BIAS) << _BITS).view(float64)
    found = (1.0 + (r + r * r * rest)) * first * second
    return x if x != x else found  # NaN stays NaN


@njit(error_model="numpy")
def log_of(x: float64) -> float:
    """Return the natural logarithm of x, to within a unit in the last place; of 0, minus infinity."""
    is_small = x < _SMALLEST_NORMAL
    bits = float64(x * 2.0**_SUBNORMAL_SHIFT if is_small else x).view(int64)
    # x = 2^k (1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
    k = (bits - _SQRT_HALF_BITS) >> _BITS
    f = int64(bits - (k << _BITS)).view(float64) - 1.0
    k -= _SUBNORMAL_SHIFT if is_small else 0
    s, half_square = f / (2.0 + f), 0.5 * f * f
    z = s * s
    rest = _L5 + z * (_L6 + z * (_L7 + z * (_L8 + z * (_L9 + z * _L10))))
    rest = z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * rest))))
    # 2 s = f - f^2 / 2 + s f^2 / 2: so f, which is exact, is added last.
    found = k * _LN2_HIGH - ((half_square - (s * (half_square + rest) + k * _LN2_LOW)) - f)
    if x == 0:
        return -np.inf
    return found if 0 < x < np.inf else (x if x > 0 else np.nan)


@compiled(nogil=True, error_model="numpy")
def _apply_exp(values: Floats) -> None:
    for index in range(len(values)):
        values[index] = exp_of(values[index])


@compiled(nogil=True, error_model="numpy")
def _apply_log(values: Floats) -> None:
    for index in range(len(values)):
        values[index] = log_of(values[index])


@compiled(nogil=True, error_model="numpy")
def _add_product(left: Floats, right: Floats, total: Floats) -> None:
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                total[i, j] += left[i, k] * right[k, j]


def exp(values: ArrayLike) -> Floats:
    """Return e to the power of each value."""
    found = np.array(values, np.float64, order="C")
    _apply_exp(found.reshape(-1))
    return found


def log(values: ArrayLike) -> Floats:
    """Return the natural logarithm of each value: minus infinity for 0, nan for negative ones."""
    found = np.array(values, np.float64, order="C")
    _apply_log(found.reshape(-1))
    return found


def tanh(values: ArrayLike) -> Floats:
    """Return the hyperbolic tangent of each value, to within 2e-16 (absolute)."""
    return 2 / (1 + exp(-2 * np.asarray(values))) - 1


def matmul(left: Floats, right: Floats) -> Floats:
    """Return the product of matrices ``(m, k)`` and ``(k, n)``."""
    total = np.zeros((len(left), right.shape[1]))
    _add_product(np.array(left, order="C"), np.array(right, order="C"), total)
    return total
