"""How the threads of a stage wait where other work shares the processors."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from busy import busy_processes
from seqlm.core.cpu_contention import FEW_SPINS, NO_SPINS
from small_training import prepare_stage
from stages_by_hand import RunStage


@pytest.fixture
def busy() -> Iterator[None]:
    """One process for each processor that does nothing but compute."""
    with busy_processes(os.cpu_count() or 1):
        yield


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("chosen", [{}, {"GOMP_SPINCOUNT": "7"}], ids=["by default", "as the user chose"])
def test_threads_wait_awake_for_a_shorter_time(
    chosen: dict[str, str], run_script: RunStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    prepare_stage(tmp_path, "the sea came in and the sea went out again\n" * 10, num_epochs=1)
    # The library says what it has read when it is loaded.
    result = run_script("train", "--model", "x", OMP_DISPLAY_ENV="verbose", **chosen)
    assert result.returncode == 0, result.stderr
    if "GOMP_SPINCOUNT" not in result.stderr:
        pytest.skip("this PyTorch's OpenMP does not say what it has read")
    # Beside the other tests there may be a crowd.
    possible = [chosen["GOMP_SPINCOUNT"]] if chosen else [wait["GOMP_SPINCOUNT"] for wait in (FEW_SPINS, NO_SPINS)]
    assert any(f"GOMP_SPINCOUNT = '{count}'" in result.stderr for count in possible)
