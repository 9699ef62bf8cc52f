"""How much of the processors others take, seen beside a process that does nothing but compute."""

import subprocess
import sys
import time

import psutil
import pytest

from seqlm.core.processors import Neighbours


def test_the_work_of_another_process_counts() -> None:
    neighbours = Neighbours()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            time.sleep(1)
            share = neighbours.share()
        finally:
            other.kill()
    # One busy process takes one of so many processors, or what others leave of it.
    assert 0.3 / psutil.cpu_count() < share <= 1.0


def test_a_system_that_tells_nothing_has_no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", unknown)
    assert Neighbours().share() == 0.0
