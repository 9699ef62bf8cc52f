"""How much of the processors other processes use, measured beside one that only computes."""

import os
import time
from pathlib import Path

import psutil
import pytest

from busy import busy_processes
from seqlm.core.processes import FEW_SPINS, NO_SPINS, OtherLoad
from stages_by_hand import RunStage

WAITS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def test_the_work_of_another_process_counts() -> None:
    load = OtherLoad()
    with busy_processes(1):
        time.sleep(1)
        fraction = load.fraction()
    # The busy process uses one processor, or the part of it that others leave.
    assert 0.3 / psutil.cpu_count() < fraction <= 1.0


def test_a_system_that_tells_nothing_has_no_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", unknown)
    assert OtherLoad().fraction() == 0.0


@pytest.mark.slow
def test_threads_of_a_stage_spin_for_a_shorter_time_beside_other_work(
    run_script: RunStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in WAITS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data/configs").mkdir()
    with busy_processes(os.cpu_count() or 1):
        # OpenMP prints its settings when it is loaded; the stage then finds no run to generate from.
        result = run_script("generate", OMP_DISPLAY_ENV="verbose")
    if "GOMP_SPINCOUNT" not in result.stderr:
        pytest.skip("this PyTorch's OpenMP does not print its settings")
    # Beside the other tests the processors may be crowded.
    shorter = [wait["GOMP_SPINCOUNT"] for wait in (FEW_SPINS, NO_SPINS)]
    assert any(f"GOMP_SPINCOUNT = '{count}'" in result.stderr for count in shorter)
