"""What other processes do to ours."""

import subprocess
import sys
import time

import psutil
import pytest

from seqlm.core.processes import OtherLoad


def test_the_work_of_another_process_counts() -> None:
    load = OtherLoad()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        time.sleep(1)
        fraction = load.fraction()
        busy.kill()
    # The busy process uses one processor, or the part of it that others leave.
    assert 0.3 / psutil.cpu_count() < fraction <= 1.0


def test_a_system_that_tells_nothing_has_no_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", unknown)
    assert OtherLoad().fraction() == 0.0
