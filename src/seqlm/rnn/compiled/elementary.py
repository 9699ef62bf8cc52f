"""exp, sigmoid and tanh in single precision, written so that loops over them become vector instructions.

They use nothing but additions, multiplications and divisions, each rounded as IEEE 754 says:
the same numbers on every processor. A number that is not finite stays so.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy import float32

from seqlm.rnn.compiled.compiling import inner

_LOG2_E = float32(1.4426950408889634)
# ln 2 in two parts: the first has so few digits that its product with a small integer is exact.
_LN2_HIGH, _LN2_LOW = float32(0.693359375), float32(-2.121944400546905e-4)
# Adding and subtracting it rounds to an integer, which then stands in the last bits of the sum.
_ROUNDER = float32(1.5 * 2**23)
_SMALLEST = float32(-87.0)
"""Below, exp is smaller than the smallest normal number."""
_SATURATED = float32(9.1)
"""From here on, tanh is 1 in single precision."""
_ONE, _TWO, _HALF = float32(1), float32(2), float32(0.5)
# Taylor's series: on [-ln 2 / 2, ln 2 / 2] the first term that is left out is 2e-8 of the sum.
_C3, _C4, _C5, _C6, _C7 = (float32(1 / n) for n in (6, 24, 120, 720, 5040))


@intrinsic
def _power_of_two(_typing: Any, shifted: Any) -> Any:
    """Return 2 to the power n, given n + _ROUNDER."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        integer = ir.IntType(32)
        bits = builder.add(builder.bitcast(values[0], integer), integer(127))
        return builder.bitcast(builder.shl(bits, integer(23)), ir.FloatType())

    return types.float32(shifted), generate


@inner
def _split(x: float32) -> tuple[float32, float32]:
    """Return 2^n and exp(r) - 1, where x = n ln 2 + r and n is an integer."""
    shifted = x * _LOG2_E + _ROUNDER
    n = shifted - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    rest = _HALF + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
    return _power_of_two(shifted), r + r * r * rest


@inner
def exp(x: float32) -> float32:
    """Return e to the power x for x at most 0; below -87, e to the power -87."""
    scale, rest = _split(_SMALLEST if x < _SMALLEST else x)
    return scale * (_ONE + rest)


@inner
def sigmoid(x: float32) -> float32:
    """Return 1 / (1 + exp(-x)), to within a few units of the last place, far below zero too."""
    shrunk = exp(x if x < 0 else -x)
    return (shrunk if x < 0 else _ONE) / (_ONE + shrunk)


@inner
def tanh(x: float32) -> float32:
    """Return the hyperbolic tangent, to within a few units of the last place, near zero too."""
    size = -x if x < 0 else x
    scale, rest = _split(-_TWO * (_SATURATED if size > _SATURATED else size))
    # exp(-2 |x|) - 1, without subtracting numbers that are nearly equal.
    shrunk = scale * rest + (scale - _ONE)
    value = -shrunk / (_TWO + shrunk)
    return -value if x < 0 else value
