"""How Numba compiles the loops, and whether this processor is fit for them.

Numba optimises a function together with everything it calls, so deeply nested functions are optimised again and
again; it compiles a function anew for each literal among its arguments; and it gives each function a wrapper for
Python, which for large tuples of arrays is larger than the function itself. The decorators below keep the seconds
that compiling takes low.
"""

from functools import cache

import numpy as np
from llvmlite import binding, ir
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
_PROBE = ir.VectorType(ir.FloatType(), 8)


@cache
def has_fma() -> bool:
    """Whether this processor multiplies and adds in one instruction: x86 with FMA, every aarch64.

    On others each fused operation is a call of a C function, and the loops, which consist of little else, are many
    times slower than PyTorch.
    """
    # The compiler itself is asked, for the processor that Numba compiles for.
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name = config.CPU_NAME or binding.get_host_cpu_name()
    return fuses(binding.Target.from_default_triple().create_target_machine(cpu=name, features=cpu_features(), opt=2))


def cpu_features() -> str:
    """Return the features of this processor that Numba uses, as LLVM writes them: ``+avx2,-avx512f,...``."""
    found: str = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return found


def fuses(machine: binding.TargetMachine) -> bool:
    """Whether code for a machine multiplies and adds vectors in single precision without calling a function."""
    module = ir.Module()
    kind = ir.FunctionType(_PROBE, [_PROBE] * 3)
    fma = ir.Function(module, kind, "llvm.fma.v8f32")
    probe = ir.Function(module, kind, "probe")
    builder = ir.IRBuilder(probe.append_basic_block())
    builder.ret(builder.call(fma, probe.args))
    return "fmaf" not in machine.emit_assembly(binding.parse_assembly(str(module)))
