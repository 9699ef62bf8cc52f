"""What dynamic evaluation does to the weights, and numbers too small to matter."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlm.rnn.compiled.compiling import jit_entry
from seqlm.rnn.compiled.parameters import Flat

_IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_SUBNORMALS_ARE_ZERO = 0x8040
"""Of the control register: small results become zero (bit 15), small arguments count as zero (bit 6)."""


@jit_entry
def step_and_pull(weights: Flat, gradients: Flat, scales: Flat, trained: Flat, pulls: Flat, lr: np.float32) -> None:
    """Set w to w - lr g / scale, then to w + pull (trained - w)."""
    for index in range(len(weights)):
        moved = weights[index] - lr * (gradients[index] / scales[index])
        weights[index] = moved + pulls[index] * (trained[index] - moved)


@intrinsic
def _exchange_control(_typing: Any, _value: Any) -> Any:
    """Set the control register of this thread's vector arithmetic and return what it was."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer])
        before, after = (cgutils.alloca_once(builder, ir.IntType(32)) for _ in range(2))
        builder.store(values[0], after)
        for name, place in (("stmxcsr", before), ("ldmxcsr", after)):
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            builder.call(function, [builder.bitcast(place, pointer)])
        return builder.load(before)

    return types.uint32(types.uint32), generate


@jit_entry
def _exchange(value: np.uint32) -> np.uint32:
    return _exchange_control(value)


_DEFAULT_CONTROL = np.uint32(0x1F80)
"""Round to nearest, raise nothing."""


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Treat numbers below 1.2e-38 as zero in this thread; nothing happens on processors other than x86."""
    if not _IS_X86:
        yield
        return
    before = _exchange(_DEFAULT_CONTROL | np.uint32(_SUBNORMALS_ARE_ZERO))
    try:
        yield
    finally:
        _exchange(np.uint32(before))
