"""Where things first occur in a stream."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
"""Tokens that are looked at in one go, so that a large text needs little memory."""
NOWHERE = int(np.iinfo(np.int64).max)


def first_places(
    blocks: Iterable[tuple[int, NDArray[np.integer]]], num_rows: int, sought: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Return the first place of each of ``num_rows`` rows, :data:`NOWHERE` for those that never occur.

    ``blocks`` are parts of a stream in their order: the place where each begins and the row
    at each of its places, -1 for none. No more of them are read than are needed to find all
    rows, or those that are ``sought``.
    """
    firsts = np.full(num_rows, NOWHERE)
    # One entry more than there are rows: it is never due, and -1 leads to it.
    is_due = np.zeros(num_rows + 1, bool)
    is_due[:-1] = True if sought is None else sought
    for start, rows in blocks:
        new = np.flatnonzero(is_due[rows])[::-1]
        # The last of several assignments stands: going backwards, that is the first place.
        firsts[rows[new]] = new + start
        is_due[rows[new]] = False
        if not is_due.any():
            break
    return firsts
