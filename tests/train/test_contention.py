"""A training stops at a checkpoint when other work starts, and its process restarts with other waits."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from busy import busy_processes
from compiled_networks import threads
from seqlm.core.processes import FEW_SPINS, NO_SPINS
from seqlm.train.callbacks import RestartRequested, contention_monitor
from seqlm.train.checkpoints import Checkpoint
from small_training import config, equal, trained, trainer

WAITS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have this setting on Linux alone")


@contextmanager
def contended(num_threads: int) -> Iterator[None]:
    """Four busy processes for each processor beside this one, which has some threads."""
    with busy_processes(4 * (os.cpu_count() or 1)), threads(num_threads):
        yield


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has chosen how threads wait."""
    for name in WAITS:
        monkeypatch.delenv(name, raising=False)


def test_a_contended_training_stops_and_resumes_to_the_same_weights(tmp_path: Path) -> None:
    run = config(model="rnn", engine="framework", num_epochs=40)
    checkpoint = Checkpoint(tmp_path, "key")
    stopped = trainer(run)
    with contended(2), pytest.raises(RestartRequested) as request:
        # However long the library's threads wait, the monitor runs after the minibatch.
        stopped.run(contention_monitor(checkpoint, seconds=0.05))
    # Five processes want each processor: this one gets a fifth.
    assert request.value.wait == NO_SPINS
    assert 0 < stopped.progress.tokens < stopped.plan.tokens_to_train
    resumed = trainer(run)
    resumed.restore(*checkpoint.load())
    resumed.run(lambda _: None)
    # So small a network is computed by one thread in any case, and two give the same bits.
    assert equal(resumed.network.weights(), trained(run).network.weights())


def test_a_training_of_one_thread_continues_beside_other_work(tmp_path: Path) -> None:
    """It waits for no other; tests/core/test_cpu_contention.py has the settings with which no other wait would help."""
    made = trainer(config(model="rnn", engine="framework", num_epochs=1))
    with contended(1):
        made.run(contention_monitor(Checkpoint(tmp_path, "key"), seconds=0.0))
    assert made.is_done


def test_a_process_restarts_with_its_command_and_number(tmp_path: Path) -> None:
    script = tmp_path / "with a space.py"
    script.write_text(
        "import os, sys\n"
        "from seqlm.core.processes import FEW_SPINS, re_exec\n"
        "print(os.getpid(), sys.argv[1:], os.environ.get('GOMP_SPINCOUNT'))\n"
        "if not FEW_SPINS.items() <= os.environ.items():\n"
        "    re_exec(FEW_SPINS)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in WAITS}
    command = [sys.executable, "-W", "ignore", script, "--run", "a b"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second = result.stdout.splitlines()
    assert first.endswith(" ['--run', 'a b'] None")
    assert second == first.removesuffix("None") + FEW_SPINS["GOMP_SPINCOUNT"]
