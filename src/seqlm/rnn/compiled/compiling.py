"""How Numba compiles the loops, chosen for the seconds that compiling takes in each process.

Numba optimises a function together with all that it calls, so that deep calls are optimised again
and again; it compiles a function anew for each literal among its arguments; and it gives each
function an entrance from Python, which for large tuples of arrays is larger than the function.
"""

import numpy as np
from numba import njit

entry = njit(nogil=True)
"""For a function that Python calls."""
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For a function that compiled code alone calls."""
spliced = njit(nogil=True, inline="always")
"""For a function whose body, without loops of its own, takes the place of the call."""

START, ONCE = np.int64(0), np.int64(1)
"""Numbers that are no literals."""
