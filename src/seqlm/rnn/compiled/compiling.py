"""How Numba compiles the loops, chosen for the seconds that compiling takes.

Numba optimises a function together with all that it calls, so that deep calls are optimised again
and again; it compiles a function anew for each literal among its arguments; and it gives each
function an entrance from Python, which for large tuples of arrays is larger than the function.
"""

import numpy as np
from numba import njit

from seqlm.core.compiling import compiled

# The loops make no arrays, so that nobody need count who holds one (_nrt).
entry = compiled(nogil=True, error_model="numpy", _nrt=False)
"""For a function that Python calls. What it becomes is kept, all that it calls included, unless functions are among
its arguments."""
inner = njit(nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For a function that compiled code alone calls."""
spliced = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
"""For a function whose body takes the place of the call: a short one, or one that is called in one place."""

START, ONCE = np.int64(0), np.int64(1)
"""Numbers that are no literals."""
