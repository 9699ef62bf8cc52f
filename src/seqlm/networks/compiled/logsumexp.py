"""-log p of tokens in double precision, from logits in single precision that are in memory for some rows at a time.

Columns that are 32 apart share a sum of exponentials. So loops over columns become vector instructions, and the sums
do not depend on the processor. At the end the 32 sums become one.
"""

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from seqlm.core.compiling import ONCE, START, jit_entry, jit_internal
from seqlm.core.elementary import exp_below_zero, log_of
from seqlm.core.metrics import Nll
from seqlm.networks.compiled.forward import BatchRows, output_logits
from seqlm.networks.compiled.team import in_threads, split_rows
from seqlm.networks.compiled.tiles import WIDTH, Panels, Tokens, empty_panels
from seqlm.networks.compiled.weights import PackedWeights

_NUM_SUMS = 32
"""Sums of a row, a multiple of every processor's WIDTH."""
_PANELS_OF_SUMS = _NUM_SUMS // WIDTH
_ROWS = 64
_LOWEST, _NONE = float32(np.finfo(np.float32).min), float32(-np.inf)


@jit_internal
def _nll_of_row(
    logits: Panels, row: int, target: int, largest: NDArray[np.float32], totals: NDArray[np.float64]
) -> float64:
    """Return -log p of a target; ``largest`` and ``totals`` (sums,) are space."""
    largest[:] = _LOWEST
    totals[:] = 0
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            value, top = logits[p, row, k], largest[start + k]
            largest[start + k] = value if value > top else top
    top = largest[0]
    for column in range(1, _NUM_SUMS):
        top = max(top, largest[column])
    for p in range(logits.shape[0]):
        start = p % _PANELS_OF_SUMS * WIDTH
        for k in range(WIDTH):
            totals[start + k] += exp_below_zero(float64(logits[p, row, k]) - float64(top))
    total = 0.0
    for column in range(_NUM_SUMS):
        total += totals[column]
    return log_of(total) + (float64(top) - float64(logits[target // WIDTH, row, target % WIDTH]))


@jit_entry
def _nll_of_some_outputs(
    weights: PackedWeights, outputs: Panels, targets: Tokens, logits: Panels, largest: NDArray[np.float32],
    totals: NDArray[np.float64], nll: Nll, first: int, last: int,
) -> None:  # fmt: skip
    """Set ``nll`` (N,) in rows ``first`` to ``last`` to -log p of ``targets`` (N,), given outputs (N, h)."""
    vocab_size = weights.spec.vocab_size
    for start in range(first, last, _ROWS):
        num_rows = min(_ROWS, last - start)
        output_logits(weights, outputs, start, ONCE, BatchRows(int(START), num_rows, num_rows), logits, START)
        # There are no logits beyond the vocabulary.
        for column in range(vocab_size, logits.shape[0] * WIDTH):
            logits[column // WIDTH, :num_rows, column % WIDTH] = _NONE
        for row in range(num_rows):
            nll[start + row] = _nll_of_row(logits, row, targets[start + row], largest, totals)


def nll_of_outputs(weights: PackedWeights, outputs: Panels, targets: Tokens, num_threads: int) -> Nll:
    """Return -log p of ``targets`` (N,), given what the last layer outputs, (N, h)."""
    nll = np.empty(len(targets))

    def work(first: int, last: int) -> None:
        logits = empty_panels(_ROWS, weights.spec.vocab_size)
        largest, totals = np.zeros(_NUM_SUMS, np.float32), np.zeros(_NUM_SUMS)
        _nll_of_some_outputs(weights, outputs, targets, logits, largest, totals, nll, first, last)

    in_threads(work, split_rows(len(nll), num_threads))
    return nll
