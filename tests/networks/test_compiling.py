"""Compiled functions: exp and tanh against NumPy, and processors that this machine does not have."""

import platform
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import numba
import numpy as np
import pytest
from llvmlite import binding
from numba import njit
from numba.core.codegen import JITCPUCodegen
from numpy.typing import NDArray

from seqlm.core.compiling import has_fma
from seqlm.core.elementary import exp_single, tanh_single
from seqlm.networks.compiled.tiles import ROWS, ROWS_AT_ONCE, WIDTH, add_product, empty_panels, outer_product
from stages_by_hand import run_python, succeeded

ARM, MAC, WINDOWS = "aarch64-unknown-linux-gnu", "arm64-apple-darwin", "x86_64-pc-windows-msvc"

SCORE = """
import numpy as np
from compiled_networks import network_settings
from seqlm.networks.network import stream_nll
from seqlm.networks.building import build_network
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
def test_who_has_fma(machine_name: str, features: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_tiles_become_fused_vector_instructions(products: list[str], triple: str, cpu: str, instruction: str) -> None:
    for text in products:
        found = assembly(text, triple, cpu)
        assert len(re.findall(instruction, found)) >= 2 * ROWS  # two vectors or more for each row of a tile
        assert "fmaf" not in found


@njit(error_model="numpy")
def fill(results: NDArray[np.float32], function: Any, values: NDArray[np.float32]) -> None:
    for place in range(len(values)):
        results[place] = function(values[place])


def results_of(function: Any, values: NDArray[np.float32]) -> NDArray[np.float32]:
    results = np.empty_like(values)
    fill(results, function, values)
    return results


_SMALL = np.logspace(-30, 0, 100_001)
_EVERYWHERE = np.concatenate([np.linspace(-12, 12, 1_000_000), _SMALL, -_SMALL])


@pytest.mark.parametrize(
    ("ours", "numpys", "arguments", "limit"),
    [(exp_single, np.exp, np.linspace(-86.9, 0, 1_000_001), 1.5), (tanh_single, np.tanh, _EVERYWHERE, 3)],
)
def test_errors_are_a_few_units_in_the_last_place(ours: Any, numpys: Any, arguments: Any, limit: float) -> None:
    values = arguments.astype(np.float32)
    exact = numpys(values.astype(np.float64))
    error = np.abs(results_of(ours, values) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() < limit


def test_what_is_not_finite_stays_so() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    np.testing.assert_array_equal(results_of(tanh_single, values), [np.nan, 1, -1, 0])
    results = results_of(exp_single, np.array([np.nan, -np.inf, -1e30, 0], np.float32))
    assert np.isnan(results[0])
    assert results[3] == 1
    assert (results[1:3] < 1e-37).all()
