"""After a kill in any stage under the real DVC, the next run ends as an undisturbed one would."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from smoke import SMALL
from workspace import Workspace, finished, wait_until

# Long enough to be killed during training, with a checkpoint after every epoch.
LONGER = SMALL | {"train.num_epochs": 30, "train.eval_every": 10, "train.sample_every": 0}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return finished(tmp_path_factory.mktemp("undisturbed"), LONGER)


@pytest.fixture
def disturbed(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace in which nothing has run yet."""
    workspace = Workspace(tmp_path)
    workspace.begin(LONGER)
    yield workspace
    # Stages that a failed test left running.
    for pid, _ in stage_processes(workspace.folder):
        os.kill(pid, signal.SIGKILL)


def stage_processes(folder: Path) -> list[tuple[int, str]]:
    """Return the Python processes that run a stage in ``folder``, each with its script and arguments."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or (process / "cwd").resolve() != folder:
                continue
            words = (process / "cmdline").read_bytes().decode().rstrip("\0").split("\0")
        except OSError:
            continue  # it ended, or belongs to another user
        scripts = [place for place, word in enumerate(words) if word.startswith("stages/")]
        if scripts and Path(words[0]).name.startswith("python"):
            found.append((int(process.name), " ".join(words[scripts[0] :])))
    return found


def runs(folder: Path, command: str) -> bool:
    return any(command.endswith(running) for _, running in stage_processes(folder))


def kill_in_stage(workspace: Workspace, command: str, stop: signal.Signals, delay: float, *options: str) -> None:
    """Run the pipeline and kill it ``delay`` seconds after this stage began, or when the stage ends."""
    process = workspace.start("dvc", "repro", *options)
    while not runs(workspace.folder, command):
        if process.poll() is not None:
            log = (workspace.folder.parent / "started.log").read_text()
            raise AssertionError(f"{command} did not run:\n{log[-2000:]}")
        time.sleep(0.005)
    deadline = time.monotonic() + delay
    while time.monotonic() < deadline and runs(workspace.folder, command):
        time.sleep(0.005)
    assert process.poll() is None
    # As in practice: Ctrl-C reaches all processes of a terminal, other signals only DVC.
    if stop == signal.SIGINT:
        os.killpg(process.pid, stop)
    else:
        process.send_signal(stop)
    process.wait(timeout=300)  # if a signal between two stages lets DVC continue, it runs the others
    wait_until(lambda: not stage_processes(workspace.folder), 5)  # no stage outlives DVC


def require_same_results(workspace: Workspace, undisturbed: Workspace) -> None:
    """Run what is left; raise AssertionError unless the results are those of the other workspace and complete."""
    workspace.run("dvc", "repro")
    assert workspace.lock() == undisturbed.lock()
    assert [path for path in workspace.results() if path.suffix == ".part"] == []


def heal_dvc(workspace: Workspace) -> None:
    """Remove DVC's table of locks if DVC was killed while it wrote it, as ``make repro`` does.

    DVC writes that file in place, and refuses to run while it is not JSON.
    """
    table = workspace.folder / ".dvc/tmp/rwlock"
    try:
        json.loads(table.read_text())
    except FileNotFoundError:
        return
    except json.JSONDecodeError:
        refused = workspace.run("dvc", "repro", check=False)
        assert refused.returncode != 0
        assert "Unable to read RWLock-file '.dvc/tmp/rwlock'" in refused.stderr
        table.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda stop: stop.name)
def test_a_kill_in_a_stage_changes_nothing(stop: signal.Signals, undisturbed: Workspace, disturbed: Workspace) -> None:
    rng, waiting = np.random.default_rng(int(stop)), undisturbed.lock()
    while waiting:
        # DVC chooses the order of the stages, and the next one to run is killed. If a signal between two stages let
        # DVC continue, a stage may have run already: then it runs again.
        done = set(disturbed.lock()) if (disturbed.folder / "dvc.lock").exists() else set()
        name = next((name for name in waiting if name not in done), min(waiting))
        options = ("--force", "--single-item", name) if name in done else ()
        # Imports take most of the first second; reading, computing and writing follow.
        kill_in_stage(disturbed, waiting.pop(name)["cmd"], stop, float(rng.uniform(0, 1.5)), *options)
        heal_dvc(disturbed)
    require_same_results(disturbed, undisturbed)
    assert json.dumps(disturbed.metrics()) == json.dumps(undisturbed.metrics())


@pytest.mark.slow
def test_an_interrupted_experiment_ends_under_its_name(disturbed: Workspace) -> None:
    options = ["-S", "train.num_epochs=1000"]
    process = disturbed.start("dvc", "exp", "run", "--name", "cc", *options)
    wait_until(lambda: any((disturbed.folder / "checkpoints/plain").glob("*.checkpoint")), 300)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=300)
    log = (disturbed.folder.parent / "started.log").read_text()
    (said,) = re.findall(r"interrupted at epoch \S+; `(.*)` continues from the last checkpoint", log)
    assert said == "dvc exp run --name cc"
    assert "resuming after epoch" in disturbed.run("sh", "-c", said).stdout
    assert disturbed.run("dvc", "exp", "list", "--name-only").stdout.split() == ["cc"]


@pytest.mark.slow
def test_two_pipelines_at_once_end_with_the_hashes_of_one(undisturbed: Workspace, disturbed: Workspace) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2):
        both = [disturbed.start("dvc", "repro", "--force") for _ in range(2)]
        time.sleep(float(rng.uniform(0, 3)))
        both.append(disturbed.start("dvc", "repro"))
        codes = [process.wait(timeout=300) for process in both]
        # DVC refuses to run what another process holds; at least one process does the work.
        assert 0 in codes, codes
    require_same_results(disturbed, undisturbed)
