"""Environments in which this x86-64 processor computes as another one would.

MKL asks two functions whether the processor is Intel's, and takes other paths if it is not: a preloaded library of two
lines reverses the answer. Environment variables stop OpenBLAS, NumPy, PyTorch, Numba and the C library from using
AVX-512.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

THIS, OTHER_MAKER, AVX2_ONLY = "this processor", "the other maker", "AVX2 only"

_LIBRARY = "int mkl_serv_intel_cpu_true(void) {{ return {0}; }}\nint mkl_serv_intel_cpu(void) {{ return {0}; }}\n"
_CHOOSING = {
    "ATEN_CPU_CAPABILITY", "GLIBC_TUNABLES", "MKL_CBWR", "NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_FEATURES",
    "NUMBA_CPU_NAME", "OPENBLAS_CORETYPE",
}  # fmt: skip
"""Variables that choose among the code for several processors."""
_AVX512 = ("F", "CD", "BW", "DQ", "VL")


def processor() -> dict[str, str]:
    """Return the maker (``vendor_id``), the ``model name`` and the ``flags`` of this processor."""
    first = Path("/proc/cpuinfo").read_text(encoding="ascii").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def obstacle() -> str | None:
    """Return why nothing can be imitated here; None if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "only x86-64 processors under Linux can be imitated"
    if shutil.which("gcc") is None:
        return "gcc, which compiles the preloaded library, is missing"
    return None


def environments(folder: Path) -> dict[str, dict[str, str]]:
    """Return the variables of this processor and of those that it can imitate, by name.

    Variables that the caller has set to choose code are left out. A processor without AVX-512 has nothing to leave out,
    so it does not imitate one with AVX2 only. The library is compiled in ``folder``.
    """
    own = processor()
    has_avx512 = "avx512f" in own["flags"].split()
    is_intel = own["vendor_id"] == "GenuineIntel"
    source, library = folder / "maker.c", folder / "maker.so"
    source.write_text(_LIBRARY.format(int(not is_intel)), encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    plain = {name: value for name, value in os.environ.items() if name not in _CHOOSING}
    # OpenBLAS has code for Zen with AVX2, for SkylakeX with AVX-512.
    other_core = ("Zen" if has_avx512 else "Haswell") if is_intel else ("SkylakeX" if has_avx512 else "Haswell")
    narrow = {
        "ATEN_CPU_CAPABILITY": "avx2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+popcnt,+sse4.2",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-AVX512{part}" for part in _AVX512),
    }
    found = {THIS: plain, OTHER_MAKER: plain | {"LD_PRELOAD": str(library), "OPENBLAS_CORETYPE": other_core}}
    return found | {AVX2_ONLY: plain | narrow} if has_avx512 else found
