"""Whether this processor can carry the compiled loops."""

from functools import cache

from llvmlite import binding, ir
from numba import config
from numba.core.codegen import get_host_cpu_features

_PROBE = ir.VectorType(ir.FloatType(), 8)


@cache
def has_fma() -> bool:
    """Whether a multiplication and an addition are one instruction here: x86 with FMA, every aarch64.

    Elsewhere each of them is a call of a C function, and the loops, which consist of little
    else, are many times slower than PyTorch.
    """
    # The compiler is asked, for the processor that Numba compiles for.
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name = config.CPU_NAME or binding.get_host_cpu_name()
    return fuses(binding.Target.from_default_triple().create_target_machine(cpu=name, features=features(), opt=2))


def features() -> str:
    """Return what Numba takes this processor to have, as LLVM writes it: ``+avx2,-avx512f,...``."""
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
