"""After a kill of DVC in any stage, the stage ends with it and the next run ends as an undisturbed one would."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from smoke import SMALL
from workspace import Workspace, finished, wait_until

pytestmark = pytest.mark.slow

# Long enough to be killed during training, with a checkpoint after every epoch.
LONGER = SMALL | {"train.num_epochs": 30, "train.eval_every": 10, "train.sample_every": 0}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return finished(tmp_path_factory.mktemp("undisturbed"), LONGER)


@pytest.fixture
def disturbed(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path)
    workspace.begin(LONGER)
    yield workspace
    for process in stages_in(workspace.folder):  # that a failed test left running
        process.kill()


def stages_in(folder: Path, command: str = "") -> list[psutil.Process]:
    """Return the Python processes that run a stage in ``folder``, or this one with its arguments."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline() if process.cwd() == str(folder) else []
        except psutil.Error:
            continue  # it ended, or belongs to another user
        scripts = [place for place, word in enumerate(words) if word.startswith("stages/")]
        if scripts and Path(words[0]).name.startswith("python"):
            found += [process] if command.endswith(" ".join(words[scripts[0] :])) or not command else []
    return found


def kill_in_stage(workspace: Workspace, command: str, stop: signal.Signals, delay: float, *options: str) -> None:
    """Run the pipeline and kill it ``delay`` seconds after this stage began, or when the stage ends."""
    process = workspace.start("dvc", "repro", *options)
    while not stages_in(workspace.folder, command):
        assert process.poll() is None, f"{command} did not run"
    deadline = time.monotonic() + delay
    while time.monotonic() < deadline and stages_in(workspace.folder, command):
        time.sleep(0.005)
    assert process.poll() is None
    # As in practice: Ctrl-C reaches all processes of a terminal, other signals only DVC.
    if stop == signal.SIGINT:
        os.killpg(process.pid, stop)
    else:
        process.send_signal(stop)
    process.wait(timeout=300)  # if a signal between two stages lets DVC continue, it runs the others
    wait_until(lambda: not stages_in(workspace.folder), 5)  # no stage outlives DVC


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda stop: stop.name)
def test_a_kill_in_a_stage_changes_nothing(stop: signal.Signals, undisturbed: Workspace, disturbed: Workspace) -> None:
    rng, waiting = np.random.default_rng(int(stop)), undisturbed.lock()
    disturbed.install()
    while waiting:
        # DVC chooses the order of the stages, and the next one to run is killed. If a signal between two stages let
        # DVC continue, a stage may have run already: then it runs again.
        done = set(disturbed.lock()) if (disturbed.folder / "dvc.lock").exists() else set()
        name = next((name for name in waiting if name not in done), min(waiting))
        options = ("--force", "--single-item", name) if name in done else ()
        # Imports take most of the first second; reading, computing and writing follow.
        kill_in_stage(disturbed, waiting.pop(name)["cmd"], stop, float(rng.uniform(0, 1.5)), *options)
        disturbed.run("make", "unlock")  # as `make repro` does
    disturbed.run("dvc", "repro")
    assert disturbed.lock() == undisturbed.lock()
    assert [path for folder in ("data", "reports") for path in (disturbed.folder / folder).rglob("*.part")] == []
