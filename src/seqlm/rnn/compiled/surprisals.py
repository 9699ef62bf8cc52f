"""Surprisals of tokens in double precision, from logits in single precision of which no copies are made.

A row of logits is read some columns at a time. Columns that lie 32 apart share a sum of exponentials below
the largest logit among them so far: so loops over columns become vector instructions, and the sums do not
depend on the processor. At last the 32 sums become one. The logits of a compiled network are summed up
while they are still in the cache, and never stand in memory together.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy import float32, float64
from numpy.typing import NDArray

from seqlm.rnn.compiled.compiling import ONCE, START, entry, inner, spliced
from seqlm.rnn.compiled.forward import Tokens
from seqlm.rnn.compiled.parameters import Packed
from seqlm.rnn.compiled.products import Matrix, Panels, add_product, empty_panels
from seqlm.rnn.compiled.tiles import WIDTH

_NUM_SUMS = 32
"""Sums of a row, a multiple of every processor's WIDTH."""
_PANELS_OF_SUMS = _NUM_SUMS // WIDTH
_ROWS, _PANELS = 128, 256 // WIDTH
"""Rows and panels of a compiled network's logits that are in the cache at a time: always as many columns."""

_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first has so few digits that its product with a small integer is exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
# Adding and subtracting it rounds to an integer, which then stands in the last bits of the sum.
_ROUNDER = 1.5 * 2.0**52
_SMALLEST = -708.0
"""Below, exp is smaller than the smallest normal number."""
_LOWEST, _NONE = float32(np.finfo(np.float32).min), float32(-np.inf)
# Taylor's series: on [-ln 2 / 2, ln 2 / 2] the first term that is left out is 6e-15 of the sum.
_C3, _C4, _C5, _C6, _C7 = 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
_C8, _C9, _C10, _C11 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800


class Room(NamedTuple):
    """What a thread needs for some rows at a time."""

    scores: Panels
    """Some panels of their logits."""
    largest: NDArray[np.float32]
    """(rows, sums): the largest logit so far of the columns that share a sum."""
    totals: NDArray[np.float64]
    """(rows, sums): their sum of exp(logit - largest)."""
    tops: NDArray[np.float32]
    """(sums,): the next values of a row of ``largest``."""
    wanted: NDArray[np.float32]
    """(rows,): the target's logit."""


def new_room() -> Room:
    """Return room for one thread."""
    sums = (_ROWS, _NUM_SUMS)
    scores = empty_panels(_ROWS, _PANELS * WIDTH)
    return Room(
        scores, np.zeros(sums, np.float32), np.zeros(sums), np.zeros(_NUM_SUMS, np.float32), np.zeros(_ROWS, np.float32)
    )


@intrinsic
def _power_of_two(_typing: Any, shifted: Any) -> Any:
    """Return 2 to the power n, given n + _ROUNDER."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        integer = ir.IntType(64)
        bits = builder.add(builder.bitcast(values[0], integer), integer(1023))
        return builder.bitcast(builder.shl(bits, integer(52)), ir.DoubleType())

    return types.float64(shifted), generate


@intrinsic
def _fused(_typing: Any, _left: Any, _right: Any, _term: Any) -> Any:
    """Return the product of the first two numbers plus the third, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return types.float64(types.float64, types.float64, types.float64), generate


@inner
def exp_in_double(x: float64) -> float64:
    """Return e to the power x for x at most 0; below -708, e to the power -708. What is no number stays so."""
    kept = _SMALLEST if x < _SMALLEST else x
    shifted = _fused(kept, _LOG2_E, _ROUNDER)
    n = shifted - _ROUNDER
    r = _fused(n, -_LN2_LOW, _fused(n, -_LN2_HIGH, kept))
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _C11, _C10), _C9), _C8), _C7)
    rest = _fused(r, _fused(r, _fused(r, _fused(r, _fused(r, rest, _C6), _C5), _C4), _C3), 0.5)
    return _power_of_two(shifted) * _fused(r * r, rest, 1.0 + r)


@spliced
def _begin(room: Room, num_rows: int) -> None:
    room.largest[:num_rows] = _LOWEST
    room.totals[:num_rows] = 0


@inner
def _take_in(logits: Panels, row: int, room: Room, place: int) -> None:
    """Add a row of logits to the sums at a place of the room."""
    largest, totals, tops = room.largest[place], room.totals[place], room.tops
    for column in range(_NUM_SUMS):
        tops[column] = largest[column]
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            value, top = logits[p, row, k], tops[start + k]
            tops[start + k] = value if value > top else top
    for column in range(_NUM_SUMS):
        totals[column] *= exp_in_double(float64(largest[column]) - float64(tops[column]))
        largest[column] = tops[column]
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            totals[start + k] += exp_in_double(float64(logits[p, row, k]) - float64(largest[start + k]))


@inner
def _surprisal(room: Room, place: int, wanted: float32) -> float64:
    """Return -log p of a logit, when all of its row have been taken in."""
    largest, totals = room.largest[place], room.totals[place]
    top, total = largest[0], 0.0
    for column in range(1, _NUM_SUMS):
        top = max(top, largest[column])
    for column in range(_NUM_SUMS):
        total += totals[column] * exp_in_double(float64(largest[column]) - float64(top))
    return np.log(total) + (float64(top) - float64(wanted))


@entry
def compare_rows(logits: Matrix, targets: NDArray[np.int64], room: Room, nats: NDArray[np.float64]) -> None:
    """Set ``nats`` (N,) to -log p of ``targets`` (N,) under logits (N, V)."""
    num_whole = logits.shape[1] // _NUM_SUMS * _NUM_SUMS
    rest = room.scores[:_PANELS_OF_SUMS]
    for row in range(len(logits)):
        _begin(room, 1)
        _take_in(logits[row, :num_whole].reshape(num_whole // WIDTH, 1, WIDTH), START, room, START)
        rest[:, 0] = _NONE
        for column in range(num_whole, logits.shape[1]):
            rest[(column - num_whole) // WIDTH, 0, column % WIDTH] = logits[row, column]
        _take_in(rest, START, room, START)
        nats[row] = _surprisal(room, START, logits[row, targets[row]])


@entry
def compare_outputs(
    packed: Packed, outputs: Panels, vocab_size: int, targets: Tokens, room: Room, nats: NDArray[np.float64],
    first: int, last: int,
) -> None:  # fmt: skip
    """Set ``nats`` (N,) in rows ``first`` to ``last`` to -log p of ``targets`` (N,), given what the last layer gives.

    ``outputs``: (N, h).
    """
    for start in range(first, last, _ROWS):
        num_rows = min(_ROWS, last - start)
        _begin(room, num_rows)
        for panel in range(0, packed.outputs.shape[0], _PANELS):
            weights = packed.outputs[panel : panel + _PANELS]
            logits = room.scores[: weights.shape[0]]
            for p in range(logits.shape[0]):
                for row in range(num_rows):
                    for k in range(WIDTH):
                        logits[p, row, k] = packed.output_bias[panel + p, 0, k]
            add_product(logits, START, outputs, start, num_rows, ONCE, num_rows, weights, START)
            # Beyond the vocabulary stand no logits.
            for column in range(vocab_size, (panel + logits.shape[0]) * WIDTH):
                logits[column // WIDTH - panel, :num_rows, column % WIDTH] = _NONE
            for row in range(num_rows):
                _take_in(logits, row, room, row)
                place = targets[start + row] - panel * WIDTH
                if 0 <= place < logits.shape[0] * WIDTH:
                    room.wanted[row] = logits[place // WIDTH, row, place % WIDTH]
        for row in range(num_rows):
            nats[start + row] = _surprisal(room, row, room.wanted[row])
