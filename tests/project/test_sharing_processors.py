"""How the threads of a stage wait when other work shares the processors."""

import os
from pathlib import Path

import psutil
import pytest

from busy import busy_processes
from seqlm.core.processes import FEW_SPINS, NO_SPINS, shorten_spinning
from stages_by_hand import RunStage


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_threads_spin_for_a_shorter_time_beside_other_work(run_script: RunStage, tmp_path: Path) -> None:
    (tmp_path / "data/configs").mkdir()
    with busy_processes(os.cpu_count() or 1):
        # OpenMP prints its settings when it is loaded; the stage then finds no run to generate from.
        result = run_script("generate", OMP_DISPLAY_ENV="verbose")
    if "GOMP_SPINCOUNT" not in result.stderr:
        pytest.skip("this PyTorch's OpenMP does not print its settings")
    # Beside the other tests the processors may be crowded.
    shorter = [wait["GOMP_SPINCOUNT"] for wait in (FEW_SPINS, NO_SPINS)]
    assert any(f"GOMP_SPINCOUNT = '{count}'" in result.stderr for count in shorter)


def test_the_choice_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda _: 100.0)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    shorten_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
