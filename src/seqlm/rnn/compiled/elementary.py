"""exp, sigmoid and tanh, written so that loops over them become vector instructions.

They use only additions, multiplications and divisions, each rounded as IEEE 754 prescribes: the same numbers on
every processor. A number that is not finite stays so.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic
from numpy import float32, float64, int32, int64

from seqlm.rnn.compiled.compiling import jit_internal

_ONE, _TWO, _HALF = float32(1), float32(2), float32(0.5)
_SATURATED = float32(9.1)
"""From here on, tanh is 1 in single precision."""

# Single precision. ln 2 comes in two parts: the first has so few digits that its product with a small integer is exact.
# Adding and subtracting the rounder rounds to an integer, which the sum then holds in its last bits. Plus the bias, and
# shifted to the place of the exponent, these bits are the power of two. Below the smallest argument, exp is smaller
# than the smallest normal number. The coefficients are those of Taylor's series: on [-ln 2 / 2, ln 2 / 2] the first
# term left out is 2e-8 of the sum.
_LOG2_E, _LN2_HIGH, _LN2_LOW = float32(1.4426950408889634), float32(0.693359375), float32(-2.121944400546905e-4)
_BITS, _BIAS = 23, 127  # of the mantissa and of the exponent
_ROUNDER, _SMALLEST = float32(1.5 * 2**_BITS), float32(-87.0)
_C3, _C4, _C5, _C6, _C7 = (float32(1 / n) for n in (6, 24, 120, 720, 5040))

# The same in double precision, with a series up to a term that is 6e-15 of the sum.
_LOG2_E_64, _LN2_HIGH_64, _LN2_LOW_64 = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
_BITS_64, _BIAS_64 = 52, 1023
_ROUNDER_64, _SMALLEST_64 = 1.5 * 2.0**_BITS_64, -708.0
_D3, _D4, _D5, _D6, _D7 = 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
_D8, _D9, _D10, _D11 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800


@intrinsic
def _fused(_typing: Any, _left: Any, _right: Any, _term: Any) -> Any:
    """Return the product of the first two numbers plus the third, rounded once, in double precision."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return types.float64(types.float64, types.float64, types.float64), generate


@jit_internal
def _split(x: float32) -> tuple[float32, float32]:
    """Return 2^n and exp(r) - 1, where x = n ln 2 + r and n is an integer."""
    shifted = float32(x * _LOG2_E + _ROUNDER)
    n = shifted - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    rest = _HALF + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
    return int32((shifted.view(int32) + _BIAS) << _BITS).view(float32), r + r * r * rest


@jit_internal
def exp(x: float32) -> float32:
    """Return e to the power x for x at most 0; below -87, e to the power -87."""
    scale, rest = _split(_SMALLEST if x < _SMALLEST else x)
    return scale * (_ONE + rest)


@jit_internal
def exp_in_double(x: float64) -> float64:
    """Return e to the power x for x at most 0; below -708, e to the power -708. NaN stays NaN."""
    kept = _SMALLEST_64 if x < _SMALLEST_64 else x
    shifted = float64(_fused(kept, _LOG2_E_64, _ROUNDER_64))
    n = shifted - _ROUNDER_64
    r = _fused(n, -_LN2_LOW_64, _fused(n, -_LN2_HIGH_64, kept))
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _D11, _D10), _D9), _D8), _D7)
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _fused(r, rest, _D6), _D5), _D4), _D3), 0.5)
    return int64((shifted.view(int64) + _BIAS_64) << _BITS_64).view(float64) * _fused(r * r, rest, 1.0 + r)


@jit_internal
def sigmoid(x: float32) -> float32:
    """Return 1 / (1 + exp(-x)), to within a few units of the last place, far below zero too."""
    shrunk = exp(x if x < 0 else -x)
    return (shrunk if x < 0 else _ONE) / (_ONE + shrunk)


@jit_internal
def tanh(x: float32) -> float32:
    """Return the hyperbolic tangent, to within a few units of the last place, near zero too."""
    size = -x if x < 0 else x
    scale, rest = _split(-_TWO * (_SATURATED if size > _SATURATED else size))
    # exp(-2 |x|) - 1, without subtracting numbers that are nearly equal.
    shrunk = scale * rest + (scale - _ONE)
    value = -shrunk / (_TWO + shrunk)
    return -value if x < 0 else value
