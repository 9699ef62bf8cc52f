"""Compiled loops that are kept on disk, tried in processes of their own."""

import importlib
import os
import pkgutil
import platform
from pathlib import Path

import numba
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

import seqlm
from full_disks import fill, mounted
from seqlm.core import compiling, elementary
from smoke import ROOT
from stages_by_hand import run_python, succeeded

ADD = """
from seqlm.core.compiling import compiled
{imports}
@compiled(nogil=True)
def add(left, right):
    return left + right + {more}
"""
CALL = "from loops import add; print(add({}, 2), sum(add.stats.cache_hits.values()))"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_loops(tmp_path / "one")


@pytest.fixture
def filled(tmp_path: Path, kept: Path) -> Path:
    """The loops that another process compiled from another folder of equal sources."""
    assert call(write_loops(tmp_path / "other"), kept) == (3, 0)
    return kept


def call(folder: Path, kept: Path, number: str = "1") -> tuple[float, int]:
    """Return a number + 2 (and what the sources add), and how many functions were read and not compiled."""
    path = f"{folder}{os.pathsep}{ROOT / 'src'}"
    printed = run_python(CALL.format(number), PYTHONPATH=path, NUMBA_CACHE_DIR=str(kept))
    value, hits = succeeded(printed).split()
    assert printed.stderr == ""
    return float(value), int(hits)


def write_loops(folder: Path, imports: str = "", more: str = "0") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "loops.py").write_text(ADD.format(imports=imports, more=more))
    return folder


def test_a_second_process_and_another_folder_of_equal_sources_compile_nothing(folder: Path, filled: Path) -> None:
    """If a newer Numba fails here, its private methods have changed, on which the cache relies: bound its version."""
    assert call(folder, filled) == (3, 1)


@pytest.mark.slow
def test_a_change_of_another_module_of_the_folder_is_seen(folder: Path, kept: Path) -> None:
    write_loops(folder, "from other import MORE", "MORE")
    for more in (10, 200):  # not as long: Python would take old bytecode of the same second
        (folder / "other.py").write_text(f"MORE = {more}\n")
        assert call(folder, kept) == (3 + more, 0)
    assert len(list((kept / "compiled").iterdir())) == 2


@pytest.mark.slow
def test_old_versions_are_removed(folder: Path, filled: Path) -> None:
    (first,) = (filled / "compiled").iterdir()
    os.utime(first, (0, 0))
    for number in range(compiling._MAX_FOLDERS - 1):
        (filled / "compiled" / f"{number}").mkdir()
    (filled / "compiled" / "gone").symlink_to("nowhere")  # listed, but not there when it is looked at
    call(write_loops(folder, more="1"), filled)
    assert sum(version.is_dir() for version in (filled / "compiled").iterdir()) == compiling._MAX_FOLDERS
    assert not first.exists()


@pytest.mark.slow
def test_on_a_full_disk_loops_are_compiled_and_leave_nothing(folder: Path, kept: Path) -> None:
    kept.mkdir()
    with mounted(kept, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        filler = fill(kept)
        assert call(folder, kept) == (3, 0)
        assert list(kept.rglob("*.nb*")) == []
        filler.unlink()
        assert [call(folder, kept), call(folder, kept)] == [(3, 0), (3, 1)]


@pytest.mark.slow
def test_a_broken_file_is_made_anew(folder: Path, filled: Path) -> None:
    for suffix in ("nbi", "nbc"):
        (path,) = filled.rglob(f"*.{suffix}")
        os.truncate(path, path.stat().st_size // 2)
        assert call(folder, filled) == (3, 0)
    assert call(folder, filled) == (3, 1)


@pytest.mark.slow
def test_code_for_other_arguments_is_not_used(folder: Path, kept: Path) -> None:
    """Two processes that start with an empty cache may write code for different arguments to one file."""
    assert (call(folder, kept), call(folder, kept, "1.0")) == ((3, 0), (3, 0))
    integers, floats = sorted(kept.rglob("*.nbc"))
    floats.write_bytes(integers.read_bytes())
    assert [call(folder, kept, "1.5"), call(folder, kept, "1.5")] == [(3.5, 0), (3.5, 1)]


USE_NETWORK = """
import numpy as np
from compiled_networks import scratch_network
from seqlm.networks.compiled import forward, training
network, ids = scratch_network(4, 128), np.zeros((2, 3), np.int64)
network.logits(ids, network.initial_state(2))
with network.thread_team():
    network.compute_gradients(ids, ids, network.initial_state(2))
loops = forward.run_network, training.serve_gradients
print(*(sum(loop.stats.cache_hits.values()) for loop in loops))
"""


@pytest.mark.slow
def test_the_loops_of_the_networks_are_kept(kept: Path) -> None:
    """Each function that Python calls: a list of those that Numba cannot keep would be printed as warnings."""
    for hits in ("0 0\n", "1 1\n"):
        run = run_python(USE_NETWORK, NUMBA_CACHE_DIR=str(kept))
        assert (run.stdout, run.stderr) == (hits, "")


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
    assert compiling.has_fma.__wrapped__() is expected


def test_a_cached_function_of_another_signature_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two processes may have chosen one file name for two signatures."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    half = compiling.compiled()(lambda number: number / 2)
    assert half(3) == 1.5
    (of_integers,) = half.overloads.values()
    monkeypatch.setattr(compiling.TolerantCache, "_load_overload", lambda *_: of_integers)
    assert half(2.5) == 1.25


def test_a_function_that_only_compiled_code_calls_becomes_no_machine_code_of_its_own() -> None:
    """If a newer Numba fails here, its private methods have changed, on which this relies: bound its version."""
    twice = compiling.jit_internal(lambda number: 2 * number)
    assert njit(lambda number: twice(number) + 1)(3) == 7
    (part,) = twice.overloads.values()
    assert not cpu_target.target_context.codegen()._engine.is_symbol_defined(part.fndesc.llvm_func_name)


def test_compiled_functions_call_those_of_their_own_folder_and_elementary_ones_alone() -> None:
    found = 0
    for package in pkgutil.walk_packages(seqlm.__path__, "seqlm."):
        for function in vars(importlib.import_module(package.name)).values():
            if isinstance(function, Dispatcher) and function.py_func.__module__ == package.name:
                found += 1
                used = [function.py_func.__globals__.get(called) for called in function.py_func.__code__.co_names]
                modules = {Path(other.py_func.__code__.co_filename) for other in used if isinstance(other, Dispatcher)}
                folders = {path.parent for path in modules if path != Path(elementary.__file__)}
                assert folders <= {Path(function.py_func.__code__.co_filename).parent}, (package.name, function)
    assert found > 40
