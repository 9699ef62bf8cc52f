"""Where things first occur in a stream."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
"""Tokens that are looked at in one go, so that a large text needs little memory."""
NOWHERE = int(np.iinfo(np.int64).max)


def first_occurrences(
    blocks: Iterable[NDArray[np.integer]], num_tokens: int, sought: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the first place of each of ``num_tokens`` tokens that are ``sought``, :data:`NOWHERE` for the others.

    ``blocks`` are parts of a stream in their order. No more of them are read than are needed.
    """
    firsts, is_due, start = np.full(num_tokens, NOWHERE), sought.copy(), 0
    for block in blocks:
        new = np.flatnonzero(is_due[block])[::-1]
        # The last of several assignments stands: going backwards, that is the first place.
        firsts[block[new]] = new + start
        is_due[block[new]] = False
        start += len(block)
        if not is_due.any():
            break
    return firsts


def overlapping(blocks: Iterable[NDArray[np.integer]], overlap: int) -> Iterator[NDArray[np.integer]]:
    """Yield the blocks of a stream, each behind the last ``overlap`` tokens of what stands before it."""
    before: NDArray[np.integer] = np.empty(0, np.int64)
    for block in blocks:
        whole = np.concatenate([before, block.astype(np.int64)])
        yield whole
        before = whole[len(whole) - min(overlap, len(whole)) :]
