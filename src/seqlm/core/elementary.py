"""exp, log, sigmoid and tanh: the same bits on every processor.

NumPy's exp, log and power differ in their last bits between processors with AVX-512 and others. The
functions here use additions, multiplications and divisions only, each rounded as IEEE 754
prescribes, in an order that the source fixes. NumPy's own sums, square roots and divisions need no
replacement.

Functions of arrays are in double precision. Those of a single number, which compiled loops call,
come in the precision that the loops need: ``exp_of`` and ``log_of`` in double precision for every
argument, and, so that loops over them become vector instructions, ``exp_below_zero`` in double
precision, ``exp_single``, ``sigmoid_single`` and ``tanh_single`` in single precision.
"""

import math

import numpy as np
from numba import types
from numpy import float32, float64, int32, int64
from numpy.typing import ArrayLike, NDArray

from seqlm.core.compiling import compiled, jit_internal

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
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (
    1 / math.factorial(n) for n in range(2, 14)
)
# log (1 + f) = 2 artanh s with s = f / (2 + f): the first term left out is 6e-19 of the sum.
_L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10 = (2 / (2 * n + 1) for n in range(1, 11))
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_SMALLEST_NORMAL, _SUBNORMAL_SHIFT = 2.0**-1022, 54
_SUBNORMAL_SCALE = 2.0**_SUBNORMAL_SHIFT
_LOWEST_NORMAL = -708.0
"""From here on, exp is at least the smallest normal number."""

_ONE, _TWO, _HALF = float32(1), float32(2), float32(0.5)
_SATURATED = float32(9.1)
"""From here on, tanh is 1 in single precision."""

# Single precision. ln 2 comes in two parts: the first has so few digits that its product with a
# small integer is exact. Adding and subtracting the rounder rounds to an integer, which the sum
# then holds in its last bits. Plus the bias, and shifted to the place of the exponent, these bits
# are the power of two. Below the smallest argument, exp is smaller than the smallest normal number.
# The coefficients are those of Taylor's series: on [-ln 2 / 2, ln 2 / 2] the first term left out is
# 2e-8 of the sum.
_LOG2_E_SINGLE = float32(_LOG2_E)
_LN2_HIGH_SINGLE, _LN2_LOW_SINGLE = float32(0.693359375), float32(-2.121944400546905e-4)
_BITS_SINGLE, _BIAS_SINGLE = 23, 127  # of the mantissa and of the exponent
_ROUNDER_SINGLE, _LOWEST_SINGLE = float32(1.5 * 2**_BITS_SINGLE), float32(-87.0)
_C3, _C4, _C5, _C6, _C7 = (float32(1 / n) for n in (6, 24, 120, 720, 5040))


@jit_internal
def exp_of(x: float64) -> float:
    """Return e to the power x, to within a unit in the last place."""
    inside = min(max(x, _LOWEST), _HIGHEST)
    shifted = float64(inside * _LOG2_E + _ROUNDER)
    n, exponent = shifted - _ROUNDER, shifted.view(int64) - _ROUNDER_BITS
    r = (inside - n * _LN2_HIGH) - n * _LN2_LOW
    rest = _E8 + r * (_E9 + r * (_E10 + r * (_E11 + r * (_E12 + r * _E13))))
    rest = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * rest)))))
    # The power of two comes in two factors, because it may be beyond the range of numbers when the
    # result is not.
    half = exponent >> 1
    first = int64((half + _BIAS) << _BITS).view(float64)
    second = int64((exponent - half + _BIAS) << _BITS).view(float64)
    found = (1.0 + (r + r * r * rest)) * first * second
    return x if x != x else found  # NaN stays NaN


@jit_internal
def log_of(x: float64) -> float:
    """Return the natural logarithm of x, to within a unit in the last place; of 0, minus
    infinity."""
    is_small = x < _SMALLEST_NORMAL
    bits = float64(x * _SUBNORMAL_SCALE if is_small else x).view(int64)
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


_fused = types.ExternalFunction(
    "llvm.fma.f64", types.float64(types.float64, types.float64, types.float64)
)
"""The product of the first two numbers plus the third, rounded once: an instruction of LLVM."""


@jit_internal
def _split(x: float32) -> tuple[float32, float32]:
    """Return 2^n and exp(r) - 1, where x = n ln 2 + r and n is an integer."""
    shifted = float32(x * _LOG2_E_SINGLE + _ROUNDER_SINGLE)
    n = shifted - _ROUNDER_SINGLE
    r = (x - n * _LN2_HIGH_SINGLE) - n * _LN2_LOW_SINGLE
    rest = _HALF + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
    return int32((shifted.view(int32) + _BIAS_SINGLE) << _BITS_SINGLE).view(
        float32
    ), r + r * r * rest


@jit_internal
def exp_single(x: float32) -> float32:
    """Return e to the power x for x at most 0; below -87, e to the power -87."""
    scale, rest = _split(_LOWEST_SINGLE if x < _LOWEST_SINGLE else x)
    return scale * (_ONE + rest)


@jit_internal
def exp_below_zero(x: float64) -> float64:
    """Return e to the power x for x at most 0; below -708, e to the power -708. NaN stays NaN."""
    kept = _LOWEST_NORMAL if x < _LOWEST_NORMAL else x
    shifted = float64(_fused(kept, _LOG2_E, _ROUNDER))
    n = shifted - _ROUNDER
    r = _fused(n, -_LN2_LOW, _fused(n, -_LN2_HIGH, kept))
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _E11, _E10), _E9), _E8), _E7)
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _fused(r, rest, _E6), _E5), _E4), _E3), 0.5)
    return int64((shifted.view(int64) + _BIAS) << _BITS).view(float64) * _fused(
        r * r, rest, 1.0 + r
    )


@jit_internal
def sigmoid_single(x: float32) -> float32:
    """Return 1 / (1 + exp(-x)), to within a few units of the last place, far below zero too."""
    shrunk = exp_single(x if x < 0 else -x)
    return (shrunk if x < 0 else _ONE) / (_ONE + shrunk)


@jit_internal
def tanh_single(x: float32) -> float32:
    """Return the hyperbolic tangent, to within a few units of the last place, near zero too."""
    size = -x if x < 0 else x
    scale, rest = _split(-_TWO * (_SATURATED if size > _SATURATED else size))
    # exp(-2 |x|) - 1, without subtracting numbers that are nearly equal.
    shrunk = scale * rest + (scale - _ONE)
    value = -shrunk / (_TWO + shrunk)
    return -value if x < 0 else value


@compiled(nogil=True, error_model="numpy")
def _apply_exp(values: Floats) -> None:
    for index in range(len(values)):
        values[index] = exp_of(values[index])


@compiled(nogil=True, error_model="numpy")
def _apply_log(values: Floats) -> None:
    for index in range(len(values)):
        values[index] = log_of(values[index])


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
