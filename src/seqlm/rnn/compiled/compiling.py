"""How Numba compiles the loops, and whether this processor is fit for them.

Numba optimises a function together with everything it calls, so deeply nested functions are optimised again and
again; it compiles a function anew for each literal among its arguments; and it gives each function a wrapper for
Python, which for large tuples of arrays is larger than the function itself. The decorators below keep the seconds
that compiling takes low.
"""

import platform
from functools import cache

import numpy as np
from numba import config, njit
from numba.core.codegen import get_host_cpu_features

from seqlm.core.compiling import compiled

# The loops create no arrays, so reference counts (_nrt) are not needed.
jit_entry = compiled(nogil=True, error_model="numpy", _nrt=False)
"""For a function that Python calls. The compiled code is cached with everything it calls, unless some arguments are
functions."""
jit_internal = njit(nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For a function that only compiled code calls."""
jit_inline = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
"""For a function whose body replaces the call: a short one, or one that is called in one place."""

START, ONCE = np.int64(0), np.int64(1)
"""Numbers that are not literals."""


@cache
def has_fma() -> bool:
    """Whether this processor multiplies and adds in one instruction: x86 with FMA, every ARM processor of 64 bits.

    On others each fused operation is a call of a C function, and the loops, which consist of little else, are many
    times slower than PyTorch.
    """
    return platform.machine().lower() in {"aarch64", "arm64"} or "+fma" in cpu_features().split(",")


def cpu_features() -> str:
    """Return the features of this processor that Numba uses, as LLVM writes them: ``+avx2,-avx512f,...``."""
    found: str = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return found
