"""How much of the processors other processes use, measured beside one that only computes."""

import sys
import time

import psutil
import pytest

from busy import busy_processes
from seqlm.core.processes import FEW_SPINS, NO_SPINS, OtherLoad, shorter_wait


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


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux threads have this setting")
@pytest.mark.parametrize(
    ("now", "got", "wait"),
    [
        ({}, 0.9, None),
        ({}, 0.6, FEW_SPINS),
        ({}, 0.3, NO_SPINS),
        (FEW_SPINS, 0.6, None),
        (FEW_SPINS, 0.3, NO_SPINS),
        (NO_SPINS, 0.3, None),
        ({"GOMP_SPINCOUNT": "7"}, 0.3, None),
        ({"OMP_WAIT_POLICY": "active"}, 0.3, None),
    ],
)
def test_the_less_a_process_gets_the_shorter_its_threads_wait(
    now: dict[str, str], got: float, wait: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in now.items():
        monkeypatch.setenv(name, value)
    assert shorter_wait(got) == wait
