"""Compiled loops that are kept on disk, tried in processes of their own."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import seqlm
from disks import as_owner, fill, mounted
from seqlm.core import elementary

ADD = """
from seqlm.core.compiling import compiled
{imports}
@compiled(nogil=True)
def add(left, right):
    return left + right + {more}
"""
CALL = "from loops import add; print(add(1, 2), sum(add.stats.cache_hits.values()))"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def call(folder: Path, kept: Path, *before: str) -> tuple[int, int]:
    """Return 1 + 2 (and what the sources add), and how many functions were read and not compiled.

    ``before`` stands before the command.
    """
    printed = in_a_process(CALL, folder, kept, *before)
    assert (printed.returncode, printed.stderr) == (0, "")
    value, hits = printed.stdout.split()
    return int(value), int(hits)


def in_a_process(script: str, folder: Path, kept: Path, *before: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {
        "PYTHONPATH": f"{folder}{os.pathsep}{Path('src').resolve()}",
        "NUMBA_CACHE_DIR": str(kept),
    }
    return subprocess.run([*before, sys.executable, "-c", script], env=variables, capture_output=True, text=True)


def write_loops(folder: Path, imports: str = "", more: str = "0") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "loops.py").write_text(ADD.format(imports=imports, more=more))
    return folder


def test_a_second_process_and_another_folder_of_equal_sources_compile_nothing(tmp_path: Path, kept: Path) -> None:
    assert call(write_loops(tmp_path / "one"), kept) == (3, 0)
    assert call(tmp_path / "one", kept) == (3, 1)
    assert call(write_loops(tmp_path / "two"), kept) == (3, 1)


def test_a_change_of_another_module_of_the_folder_is_seen(tmp_path: Path, kept: Path) -> None:
    folder = write_loops(tmp_path / "one", "from other import MORE", "MORE")
    (folder / "other.py").write_text("MORE = 10\n")
    assert call(folder, kept) == (13, 0)
    (folder / "other.py").write_text("MORE = 20\n")
    assert call(folder, kept) == (23, 0)
    assert len(list((kept / "compiled").iterdir())) == 2


def test_old_versions_are_removed(tmp_path: Path, kept: Path) -> None:
    call(write_loops(tmp_path / "one"), kept)
    (first,) = (kept / "compiled").iterdir()
    os.utime(first, (0, 0))
    for number in range(7):
        (kept / "compiled" / f"{number}").mkdir()
    (kept / "compiled" / "gone").symlink_to("nowhere")  # listed, but not there when it is looked at
    call(write_loops(tmp_path / "one", more="1"), kept)
    assert sum(version.is_dir() for version in (kept / "compiled").iterdir()) == 8
    assert not first.exists()


def test_without_a_place_to_keep_them_loops_are_compiled(tmp_path: Path, kept: Path) -> None:
    kept.write_text("a file where a folder should be made")
    assert call(write_loops(tmp_path / "one"), kept) == (3, 0)


def kept_files(kept: Path) -> list[Path]:
    return sorted(path for path in kept.rglob("*.nb*"))


def test_on_a_full_disk_loops_are_compiled_and_leave_nothing(tmp_path: Path, kept: Path) -> None:
    kept.mkdir()
    with mounted(kept, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        filler = fill(kept)
        assert call(write_loops(tmp_path / "one"), kept) == (3, 0)
        assert kept_files(kept) == []
        os.truncate(filler, 56 * 1024)  # two pages of 4 KB: one for the index, one for what is larger
        assert call(tmp_path / "one", kept) == (3, 0)
        assert [path.suffix for path in kept_files(kept)] == [".nbi"]
        filler.unlink()
        assert call(tmp_path / "one", kept) == (3, 0)
        assert call(tmp_path / "one", kept) == (3, 1)


def test_from_a_folder_that_may_not_be_written_loops_are_read(tmp_path: Path, kept: Path) -> None:
    assert call(write_loops(tmp_path / "one"), kept) == (3, 0)
    (version,) = (kept / "compiled").iterdir()
    for folder in (version, version.parent):
        folder.chmod(0o555)
    assert call(tmp_path / "one", kept, *as_owner()) == (3, 1)
    assert call(write_loops(tmp_path / "one", more="1"), kept, *as_owner()) == (4, 0)
    assert len(list((kept / "compiled").iterdir())) == 1


def test_a_folder_that_goes_in_between_is_made_again_or_done_without(tmp_path: Path, kept: Path) -> None:
    script = (
        "import pathlib, shutil, loops; loops.add(1, 2); "
        f"kept = pathlib.Path({str(kept)!r}); shutil.rmtree(kept); "
        "loops.add(1.0, 2); assert list(kept.rglob('*.nbc')); "
        "shutil.rmtree(kept); kept.write_text('a file in its place'); print(loops.add(1j, 2))"
    )
    folder = write_loops(tmp_path / "one")
    printed = in_a_process(script, folder, kept)
    assert (printed.stdout, printed.stderr) == ("(2+1j)\n", "")


def test_a_broken_file_is_made_anew(tmp_path: Path, kept: Path) -> None:
    call(write_loops(tmp_path / "one"), kept)
    for suffix in (".nbi", ".nbc"):
        (path,) = (path for path in kept_files(kept) if path.suffix == suffix)
        os.truncate(path, path.stat().st_size // 2)
        assert call(tmp_path / "one", kept) == (3, 0)
    assert call(tmp_path / "one", kept) == (3, 1)


def test_code_for_other_arguments_is_not_used(tmp_path: Path, kept: Path) -> None:
    """Two processes that start with an empty cache may write code for different arguments to one file."""
    folder = write_loops(tmp_path / "one")
    in_a_process("from loops import add; add(1, 2), add(1.0, 2)", folder, kept)
    integers, floats = (path for path in kept_files(kept) if path.suffix == ".nbc")
    floats.write_bytes(integers.read_bytes())
    script = "from loops import add; print(add(1.5, 2), sum(add.stats.cache_hits.values()))"
    assert in_a_process(script, folder, kept).stdout.split() == ["3.5", "0"]
    assert in_a_process(script, folder, kept).stdout.split() == ["3.5", "1"]


@pytest.mark.slow
def test_the_loops_of_the_networks_are_kept(kept: Path) -> None:
    """Each function that Python calls: a list of those that Numba cannot keep would be printed as warnings."""
    script = (
        "import torch; from seqlm.rnn.scratch import ScratchRNN; "
        "from seqlm.rnn.compiled import forward, parameters, training; "
        "network = ScratchRNN(4, 128, 'tanh', torch.Generator().manual_seed(0)); ids = torch.zeros(2, 3, dtype=int); "
        "state = network.initial_state(2); network(ids, state); team_ = network.thread_team(); team_.__enter__(); "
        "network.compute_gradients(ids, ids, state); team_.__exit__(None, None, None); "
        "print(*(sum(loop.stats.cache_hits.values()) for loop in "
        "(forward.read, training.serve_gradients, parameters.pack_weights)))"
    )
    variables = os.environ | {"PYTHONPATH": str(Path("src").resolve()), "NUMBA_CACHE_DIR": str(kept)}
    for hits in ("0 0 0", "1 1 1"):
        run = subprocess.run([sys.executable, "-c", script], env=variables, check=True, capture_output=True, text=True)
        assert (run.stdout.strip(), run.stderr) == (hits, "")


def test_compiled_functions_call_those_of_their_own_folder_and_elementary_ones_alone() -> None:
    """The cache key hashes these sources."""
    names = [module.name for module in pkgutil.walk_packages(seqlm.__path__, "seqlm.")]
    found = 0
    for name in names:
        module = importlib.import_module(name)
        for function in vars(module).values():
            if isinstance(function, Dispatcher) and function.py_func.__module__ == name:
                found += 1
                used = [function.py_func.__globals__.get(called) for called in function.py_func.__code__.co_names]
                modules = {Path(other.py_func.__code__.co_filename) for other in used if isinstance(other, Dispatcher)}
                folders = {path.parent for path in modules if path != Path(elementary.__file__)}
                assert folders <= {Path(function.py_func.__code__.co_filename).parent}, (name, function)
    assert found > 40
