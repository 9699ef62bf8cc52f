"""Benchmarks say in one line what is missing, and a long one says what it is doing."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from smoke import ROOT


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("benchmark_of_ngrams", ROOT / "benchmarks" / "ngrams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("natural", "processes", "words"):
        monkeypatch.delitem(sys.modules, name)
    return module


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize(
    ("commands", "complaint"),
    [
        # As KenLM's own CMakeLists.txt does it; no machine has this version.
        ("find_package(Boost 999.0 REQUIRED)", "Boost is missing"),
        ('message(FATAL_ERROR "no compiler\\nat all")', "no compiler at all"),
    ],
)
def test_a_missing_requirement_of_kenlm_is_named(
    commands: str, complaint: str, benchmark: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\n{commands}\n")
    with pytest.raises(SystemExit) as caught:
        benchmark.prepare_build(tmp_path, tmp_path / "build")
    assert str(caught.value).startswith("lmplz cannot be built")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_cmake_is_named(benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="there is no cmake"):
        benchmark.prepare_build(tmp_path, tmp_path / "build")


@pytest.mark.slow
def test_a_long_benchmark_says_how_long_it_takes_and_where_it_is() -> None:
    command = [sys.executable, "benchmarks/neighbours.py", "--network", "rnn", "--rounds", "1", "--seconds", "0.1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    # One network, one round, three ways to wait, alone and beside others.
    assert result.stderr.splitlines() == ["6 trainings: about 0 minutes", "rnn: round 1 of 1"]
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["tokens", "network", "rnn", "rnn", "rnn"]
