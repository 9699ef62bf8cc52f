"""Processors that this machine does not have: those without fused multiply-add, and aarch64."""

import platform
import re
from collections.abc import Callable
from unittest import mock

import numba
import numpy as np
import pytest
from llvmlite import binding
from numba import njit
from numba.core.codegen import JITCPUCodegen

from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.tiles import ROWS, ROWS_AT_ONCE, WIDTH, add_product, empty_panels, outer_product
from stages_by_hand import run_python, succeeded

ARM, MAC, WINDOWS = "aarch64-unknown-linux-gnu", "arm64-apple-darwin", "x86_64-pc-windows-msvc"

SCORE = """
import numpy as np
from compiled_networks import network_settings
from seqlm.rnn.array_network import stream_nll
from seqlm.rnn.building import build_network
network = build_network(network_settings("scratch", num_hiddens=128), 28, 0)
nll = stream_nll(network, np.arange(100) % 28)
print(network.engine, nll.sum())
"""


def llvm_of(function: Callable[..., object], *arguments: object) -> str:
    """Return what Numba makes of a function before the compiler's last steps, which know the processor."""
    texts = []

    def add_module(codegen: JITCPUCodegen, module: binding.ModuleRef) -> object:
        texts.append(str(module))
        return before(codegen, module)

    before = JITCPUCodegen._add_module
    with mock.patch.object(JITCPUCodegen, "_add_module", add_module):
        # Without Numba's counters of references, which were compiled for this processor already.
        njit(nogil=True, _nrt=False)(function)(*arguments)
    return texts[-1]


def assembly(text: str, triple: str, cpu: str) -> str:
    """Return a compiled function's code for another machine; it contains the names of what it calls."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    text = re.sub(r"^target (triple|datalayout) = .*$", "", text, flags=re.MULTILINE)
    module = binding.parse_assembly(f'target triple = "{triple}"\ntarget datalayout = "{target.target_data}"\n{text}')
    return target.emit_assembly(module)


@pytest.mark.parametrize(
    ("machine_name", "features", "expected"),
    [
        ("x86_64", "+avx2,+fma", True),
        ("AMD64", "+avx2,-fma,+fma4", False),  # a virtual machine that hides it
        ("arm64", "", True),
        ("aarch64", "", True),
    ],
)
def test_who_multiplies_and_adds_at_once(
    machine_name: str, features: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine_name)
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert has_fma.__wrapped__() is expected


def test_a_processor_without_fma_scores_with_pytorch() -> None:
    old = {"NUMBA_CPU_NAME": "sandybridge", "NUMBA_CPU_FEATURES": "+avx,-avx2,-fma,-avx512f"}
    engine, total = succeeded(run_python(SCORE, **old)).split()
    assert engine == "framework"
    # Small weights: hardly more or less than log 28 for each of 99 tokens.
    assert float(total) == pytest.approx(99 * np.log(28), rel=1e-3)


@pytest.fixture(scope="module")
def products() -> list[str]:
    """The two products, which have all kinds of tiles between them."""
    a, b, c = empty_panels(16, WIDTH), empty_panels(WIDTH, 5 * WIDTH), empty_panels(16, 5 * WIDTH)
    out, sums = np.zeros((ROWS, 5 * WIDTH), np.float32), empty_panels(ROWS_AT_ONCE, 5 * WIDTH)
    return [
        llvm_of(add_product.py_func, c, 0, a, 0, 9, 1, 9, b, 0),
        llvm_of(outer_product.py_func, out, 0, ROWS, a, 0, b, 0, 4, sums),
    ]


@pytest.mark.parametrize(
    ("triple", "cpu", "instruction"),
    [(ARM, "", r"fmla\s+v"), (MAC, "", r"fmla\.4s\s+v"), (WINDOWS, "haswell", r"vfmadd\d+ps\s+.*ymm")],
)
def test_the_tiles_become_fused_vector_instructions(
    products: list[str], triple: str, cpu: str, instruction: str
) -> None:
    for text in products:
        found = assembly(text, triple, cpu)
        assert len(re.findall(instruction, found)) >= 2 * ROWS  # two vectors or more for each row of a tile
        assert "fmaf" not in found
