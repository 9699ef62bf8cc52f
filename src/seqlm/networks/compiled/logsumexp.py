"""-log p of tokens in double precision, from logits in single precision that are never in memory together.

The logits of a row are computed some columns at a time, and summed up while they are still in the cache. Columns that
are 32 apart share a sum of exponentials, relative to the largest logit among them so far. So loops over columns become
vector instructions, and the sums do not depend on the processor. At the end the 32 sums become one.
"""

from typing import NamedTuple

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from seqlm.core.compiling import ONCE, START, jit_entry, jit_internal
from seqlm.core.elementary import exp_below_zero, log_of
from seqlm.networks.compiled.team import in_threads, split_rows
from seqlm.networks.compiled.tiles import WIDTH, Panels, Tokens, add_product, empty_panels

Nll = NDArray[np.float64]

_NUM_SUMS = 32
"""Sums of a row, a multiple of every processor's WIDTH."""
_PANELS_OF_SUMS = _NUM_SUMS // WIDTH
_ROWS, _PANELS = 128, 256 // WIDTH
"""Rows and panels of logits that are in the cache at a time: always as many columns."""
_LOWEST, _NONE = float32(np.finfo(np.float32).min), float32(-np.inf)


class LogSumExpBuffers(NamedTuple):
    """What one thread needs for some rows at a time."""

    logits: Panels
    """Some panels of their logits."""
    largest: NDArray[np.float32]
    """(rows, sums): the largest logit so far of the columns that share a sum."""
    totals: NDArray[np.float64]
    """(rows, sums): their sum of exp(logit - largest)."""
    next_largest: NDArray[np.float32]
    """(sums,): the next values of a row of ``largest``."""
    wanted: NDArray[np.float32]
    """(rows,): the target's logit."""


def _new_buffers() -> LogSumExpBuffers:
    """Return buffers for one thread."""
    return LogSumExpBuffers(
        logits=empty_panels(_ROWS, _PANELS * WIDTH),
        largest=np.zeros((_ROWS, _NUM_SUMS), np.float32),
        totals=np.zeros((_ROWS, _NUM_SUMS)),
        next_largest=np.zeros(_NUM_SUMS, np.float32),
        wanted=np.zeros(_ROWS, np.float32),
    )


@jit_internal
def _add(logits: Panels, row: int, buffers: LogSumExpBuffers, index: int) -> None:
    """Add a row of logits to the sums of row ``index`` of the buffers."""
    largest, totals, following = buffers.largest[index], buffers.totals[index], buffers.next_largest
    for column in range(_NUM_SUMS):
        following[column] = largest[column]
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            value, top = logits[p, row, k], following[start + k]
            following[start + k] = value if value > top else top
    for column in range(_NUM_SUMS):
        totals[column] *= exp_below_zero(float64(largest[column]) - float64(following[column]))
        largest[column] = following[column]
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            totals[start + k] += exp_below_zero(float64(logits[p, row, k]) - float64(largest[start + k]))


@jit_internal
def _nll(buffers: LogSumExpBuffers, index: int, wanted: float32) -> float64:
    """Return -log p of a logit, after all logits of its row have been added."""
    largest, totals = buffers.largest[index], buffers.totals[index]
    top, total = largest[0], 0.0
    for column in range(1, _NUM_SUMS):
        top = max(top, largest[column])
    for column in range(_NUM_SUMS):
        total += totals[column] * exp_below_zero(float64(largest[column]) - float64(top))
    return log_of(total) + (float64(top) - float64(wanted))


@jit_entry
def _nll_of_some_outputs(
    weights: Panels, bias: Panels, outputs: Panels, vocab_size: int, targets: Tokens, buffers: LogSumExpBuffers,
    nll: Nll, first: int, last: int,
) -> None:  # fmt: skip
    """Set ``nll`` (N,) in rows ``first`` to ``last`` to -log p of ``targets`` (N,), given outputs (N, h)."""
    for start in range(first, last, _ROWS):
        num_rows = min(_ROWS, last - start)
        buffers.largest[:num_rows] = _LOWEST
        buffers.totals[:num_rows] = 0
        for panel in range(0, weights.shape[0], _PANELS):
            some = weights[panel : panel + _PANELS]
            logits = buffers.logits[: some.shape[0]]
            for p in range(logits.shape[0]):
                for row in range(num_rows):
                    for k in range(WIDTH):
                        logits[p, row, k] = bias[panel + p, 0, k]
            add_product(logits, START, outputs, start, num_rows, ONCE, num_rows, some, START)
            # There are no logits beyond the vocabulary.
            for column in range(vocab_size, (panel + logits.shape[0]) * WIDTH):
                logits[column // WIDTH - panel, :num_rows, column % WIDTH] = _NONE
            for row in range(num_rows):
                _add(logits, row, buffers, row)
                place = targets[start + row] - panel * WIDTH
                if 0 <= place < logits.shape[0] * WIDTH:
                    buffers.wanted[row] = logits[place // WIDTH, row, place % WIDTH]
        for row in range(num_rows):
            nll[start + row] = _nll(buffers, row, buffers.wanted[row])


def nll_of_outputs(
    weights: Panels, bias: Panels, outputs: Panels, vocab_size: int, targets: Tokens, num_threads: int
) -> Nll:
    """Return -log p of ``targets`` (N,), given what the last layer outputs, (N, h), and the output layer."""
    nll = np.empty(len(targets))

    def work(first: int, last: int) -> None:
        _nll_of_some_outputs(weights, bias, outputs, vocab_size, targets, _new_buffers(), nll, first, last)

    in_threads(work, split_rows(len(nll), num_threads))
    return nll
