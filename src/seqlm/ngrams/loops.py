"""Compiled loops for the n-grams of large texts."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Longs = NDArray[np.int64]


@njit(nogil=True)
def merge_two(keys: Longs, counts: Longs, other_keys: Longs, other_counts: Longs) -> tuple[Longs, Longs]:
    """Return the union of two runs of rising keys, counts of equal keys added up."""
    size, other_size = len(keys), len(other_keys)
    merged, sums = np.empty(size + other_size, np.int64), np.empty(size + other_size, np.int64)
    here = there = end = 0
    while here < size and there < other_size:
        key, other = keys[here], other_keys[there]
        # Without branches: which of two keys is smaller cannot be foreseen.
        takes_key, takes_other = key <= other, other <= key
        merged[end] = min(key, other)
        sums[end] = counts[here] * takes_key + other_counts[there] * takes_other
        here += takes_key
        there += takes_other
        end += 1
    for place in range(here, size):
        merged[end], sums[end] = keys[place], counts[place]
        end += 1
    for place in range(there, other_size):
        merged[end], sums[end] = other_keys[place], other_counts[place]
        end += 1
    return merged[:end], sums[:end]
