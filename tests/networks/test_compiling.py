"""Compiled functions: exp and tanh against NumPy, and processors that this machine does not have."""

import platform
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from seqlm.core.compiling import has_fma
from seqlm.core.elementary import exp_single, tanh_single
from stages_by_hand import run_python, succeeded

SCORE = """
import numpy as np
from compiled_networks import network_settings
from seqlm.networks.network import stream_nll
from seqlm.networks.building import build_network
network = build_network(network_settings("scratch", num_hiddens=128), 28, 0)
nll = stream_nll(network, np.arange(100) % 28)
print(network.engine, nll.sum())
"""


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
