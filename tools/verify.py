"""Run the pipeline from scratch, without the run cache, and compare every hash with dvc.lock.

`make verify` does it with the settings of params.yaml. `python tools/verify.py --small` runs small settings, twice,
and compares the two runs; with `--imitate`, the runs after the first imitate a processor of another maker and one
that has only AVX2. Each run has a copy of the project and a DVC cache of its own, in a temporary folder.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from smoke import ROOT, SMALL, run_copy

Stages = dict[str, Any]
"""The entries of a dvc.lock."""
Environment = Mapping[str, str]

_AVX2_ONLY = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+popcnt,+sse4.2",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512CD,-AVX512BW,-AVX512DQ,-AVX512VL",
}
"""Variables that stop libraries from using AVX-512."""
_MAKER = "int mkl_serv_intel_cpu_true(void) {{ return {0}; }}\nint mkl_serv_intel_cpu(void) {{ return {0}; }}\n"


def obstacle() -> str | None:
    """Return why no other processor can be imitated here; None if one can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64" or shutil.which("gcc") is None:
        return "only x86-64 processors under Linux can be imitated, with gcc"
    return None


def processors(folder: Path) -> dict[str, Environment]:
    """Return the variables of this processor and of those that it can imitate, by name.

    MKL asks two functions whether the processor is Intel's, and takes other paths if it is not: a preloaded library,
    compiled in ``folder``, reverses the answer. Variables that the caller has set to choose code are left out.
    """
    cpu = Path("/proc/cpuinfo").read_text(encoding="ascii").split("\n\n")[0]
    has_avx512, is_intel = " avx512f " in cpu, "GenuineIntel" in cpu
    source, library = folder / "maker.c", folder / "maker.so"
    source.write_text(_MAKER.format(int(not is_intel)), encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    plain = {name: value for name, value in os.environ.items() if name not in {*_AVX2_ONLY, "MKL_CBWR"}}
    # OpenBLAS has code for Zen with AVX2, for SkylakeX with AVX-512.
    other_core = "SkylakeX" if has_avx512 and not is_intel else "Zen" if has_avx512 else "Haswell"
    other = plain | {"LD_PRELOAD": str(library), "OPENBLAS_CORETYPE": other_core}
    found: dict[str, Environment] = {"this processor": plain, "the other maker": other}
    # A processor without AVX-512 has nothing to leave out.
    return found | ({"AVX2 only": plain | _AVX2_ONLY} if has_avx512 else {})


def differences(expected: Stages, found: Stages) -> dict[str, list[str]]:
    """Return the outputs that differ by stage, in the order of dvc.yaml."""
    differing, order = {}, list(YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"])
    for name in sorted(expected | found, key=lambda name: order.index(name.partition("@")[0])):
        hashes = [
            {out["path"]: out["md5"] for out in stages.get(name, {}).get("outs", [])} for stages in (expected, found)
        ]
        paths = [path for path in sorted(hashes[0] | hashes[1]) if hashes[0].get(path) != hashes[1].get(path)]
        if paths:
            differing[name] = paths
    return differing


def read_lock(folder: Path) -> Stages:
    """Return the entries of a folder's dvc.lock."""
    stages: Stages = YAML(typ="safe").load(folder / "dvc.lock")["stages"]
    return stages


def run_from_scratch(folder: Path, environment: Environment, *, small: bool) -> Stages:
    """Run the whole pipeline in a fresh copy in ``folder`` and return the entries of its dvc.lock."""
    # The sample instead of a corpus that cannot be reached would change everything.
    if code := run_copy(folder, SMALL if small else {"download.fallback": None}, environment):
        sys.exit(code)
    return read_lock(folder)


def main() -> int:
    """Run, compare, print what differs, the first stage first, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the sample corpus with small settings")
    parser.add_argument("--imitate", action="store_true", help="also run as other processors would")
    options = parser.parse_args()
    if options.imitate and (why := obstacle()):
        parser.error(why)
    expected, code = None if options.small else read_lock(ROOT), 0
    with tempfile.TemporaryDirectory() as base:
        runs: dict[str, Environment] = {"first run": os.environ}
        if options.imitate:
            runs = processors(Path(base))
        elif options.small:
            runs["second run"] = os.environ
        for name, environment in runs.items():
            found = run_from_scratch(Path(base, name), environment, small=options.small)
            expected = expected or found
            differing = differences(expected, found)
            total = sum(len(stage["outs"]) for stage in (found | expected).values())
            print(f"{name}: {total - sum(map(len, differing.values()))} of {total} outputs are equal", flush=True)
            for stage, paths in differing.items():
                print(f"{name}: {stage}: {', '.join(paths)}")
                code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
