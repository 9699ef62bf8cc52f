"""Work that several processes share, what other processes do to ours, and memory that is used again."""

import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import matplotlib as mpl
import psutil
import pytest
import torch
from matplotlib.figure import Figure

from busy import busy_processes
from compiled_networks import threads
from seqlm.core.errors import DataError, MachineError
from seqlm.core.files import read_csv, write_text
from seqlm.core.layout import Layout
from seqlm.core.processes import FEW_SPINS, NO_SPINS, OtherLoad, map_in_processes
from seqlm.report.drawing import draw_all
from seqlm.report.figures import style as figure_style
from seqlm.report.figures.plots import reach_figure, trained_figure
from seqlm.report.figures.style import svg_text
from smoke import ROOT
from stages_by_hand import RunStage, run_python, succeeded

TABLES = ROOT / "reports" / "gradients"
WAITS = """
import os, time
from seqlm.core.processes import map_in_processes

def wait(number):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: what two print may be mixed
    time.sleep(60)

map_in_processes(wait, range(2), 2)
"""

WITHOUT_SEMAPHORES = """
import _multiprocessing
del _multiprocessing.SemLock
from seqlm.core.processes import default_processes
print(default_processes())
"""

forks = pytest.mark.skipif(sys.platform != "linux", reason="only Linux copies processes")


def drawn() -> list[Figure]:
    figures = {"trained": trained_figure, "reach": reach_figure}
    return [draw(read_csv(TABLES / f"{name}.csv")) for name, draw in figures.items()]


@forks
def test_processes_are_copies_each_with_one_thread_and_no_more_than_there_is_to_do() -> None:
    held = threading.Lock()  # nothing that could travel

    def work(item: int) -> tuple[int, int, int]:
        with held:
            return item, os.getpid(), torch.get_num_threads()

    with threads(2):
        found = map_in_processes(work, range(2), 8)
        assert torch.get_num_threads() == 2
    assert [number for number, _, _ in found] == [0, 1]
    assert os.getpid() not in {pid for _, pid, _ in found}
    assert {num_threads for _, _, num_threads in found} == {1}
    assert map_in_processes(lambda item: (item, os.getpid()), range(1), 8) == [(0, os.getpid())]
    assert map_in_processes(work, [], 8) == []


@forks
def test_any_number_of_processes_draws_the_same_bytes_in_order() -> None:
    texts = map_in_processes(svg_text, drawn(), 1)
    assert len({*texts}) == 2
    assert map_in_processes(svg_text, drawn(), 2) == texts


def test_a_figure_is_the_same_as_matplotlib_would_save_it(tmp_path: Path) -> None:
    (drawn_once, *_), (saved, *_) = drawn(), drawn()
    with mpl.rc_context(figure_style.RC_PARAMS):
        saved.savefig(tmp_path / "saved.svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    saved_text = (tmp_path / "saved.svg").read_text().replace("#010203", "currentColor")
    assert figure_style._compact(saved_text) == svg_text(drawn_once)


@forks
@pytest.mark.parametrize("num_processes", [1, 2])
def test_what_one_raises_is_raised(num_processes: int) -> None:
    def refuse(number: int) -> None:
        if number == 1:
            raise DataError(f"table {number}: broken")

    with pytest.raises(DataError, match="table 1: broken"):
        map_in_processes(refuse, range(3), num_processes)


def test_a_table_that_is_missing_leaves_the_figures_as_they_were(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for name in ("preprocess", "gradients"):
        shutil.copytree(ROOT / "reports" / name, layout.reports(name))
    write_text(layout.figure("book-unrolled"), "old")
    with pytest.raises(DataError, match=r"summary\.json: no such file: run the stage that writes it"):
        draw_all(layout, 1)
    assert [path.read_text() for path in layout.figure("x").parent.iterdir()] == ["old"]


@forks
def test_a_process_that_is_ended_is_one_line() -> None:
    parent = os.getpid()

    def end(number: int) -> None:
        if os.getpid() != parent and number == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(MachineError, match="was killed"):
        map_in_processes(end, range(3), 2)


@forks
def test_processes_end_with_the_one_that_started_them() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(parent.stdout.readline())) for _ in range(2)]
        parent.kill()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive


def test_where_processes_cannot_wait_for_each_other_one_works() -> None:
    assert succeeded(run_python(WITHOUT_SEMAPHORES)) == "1\n"


WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


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
    for name in WAIT_VARIABLES:
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


# Numbers of page faults of arrays that follow each other: of the first ones, then of the others.
PAGE_FAULTS = """
import resource, sys
import numpy as np
from seqlm.core.processes import keep_freed_memory

if sys.argv[1:]:
    keep_freed_memory()
faults = [0]
for _ in range(2):
    for _ in range(10):
        np.ones(5_000_000)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[2] - faults[1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can keep freed memory")
def test_later_arrays_take_no_new_pages() -> None:
    without, kept = (int(succeeded(run_python(PAGE_FAULTS, *arguments))) for arguments in ([], ["keep"]))
    assert kept < 10 < without
