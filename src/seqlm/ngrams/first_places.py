"""Where things first occur in a stream."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
"""Tokens that are looked at in one go, so that a large text needs little memory."""
NOWHERE = int(np.iinfo(np.int64).max)


def first_places(blocks: Iterable[tuple[int, NDArray[np.integer]]], num_rows: int) -> NDArray[np.int64]:
    """Return the first place of each of ``num_rows`` rows, :data:`NOWHERE` for those that never occur.

    ``blocks`` are parts of a stream in their order: the place where each begins and the row
    at each of its places, -1 for none. No more of them are read than are needed.
    """
    firsts = np.full(num_rows, NOWHERE)
    for start, rows in blocks:
        places = np.flatnonzero(rows >= 0)
        new = places[firsts[rows[places]] == NOWHERE][::-1]
        # The last of several assignments stands: going backwards, that is the first place.
        firsts[rows[new]] = new + start
        if len(new) and firsts.max(initial=0) < NOWHERE:
            break
    return firsts
