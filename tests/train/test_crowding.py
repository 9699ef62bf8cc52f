"""A training that others come to: it stops at a checkpoint, and its process begins again with other waits."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch

from busy import busy_processes
from seqlm.core.cpu_contention import FEW_SPINS, NO_SPINS
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.contention import ContentionMonitor, RestartRequested
from small_training import config, equal, trained, trainer

WAITS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have this setting on Linux alone")


def crowd() -> AbstractContextManager[None]:
    """Four processes for each processor that do nothing but compute."""
    return busy_processes(4 * (os.cpu_count() or 1))


@contextmanager
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has chosen how threads wait."""
    for name in WAITS:
        monkeypatch.delenv(name, raising=False)


def test_a_training_among_many_stops_and_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    run = config(model="rnn", num_epochs=40)
    checkpoint = Checkpoint(tmp_path, "x", "key")
    stopped = trainer(run)
    with crowd(), two_threads(), pytest.raises(RestartRequested) as crowded:
        # However long the library's threads wait, it looks after the minibatch.
        stopped.run(ContentionMonitor(checkpoint, seconds=0.05))
    # Five processes want each processor: this one gets a fifth.
    assert crowded.value.wait == NO_SPINS
    assert 0 < stopped.tokens_trained < stopped.plan.tokens_to_train
    saved = checkpoint.load()
    assert saved is not None
    goes_on = trainer(run)
    goes_on.restore(*saved)
    goes_on.run(lambda _: None)
    # So small a network is computed by one thread in any case, and two give the same bits.
    assert equal(goes_on.network.weights(), trained(run).network.weights())


@pytest.mark.parametrize("setting", [NO_SPINS, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}], ids=str)
def test_a_training_goes_on_where_another_wait_is_not_to_be_had(
    setting: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    made = trainer(config(model="rnn", num_epochs=1))
    with crowd(), two_threads():
        made.run(ContentionMonitor(Checkpoint(tmp_path, "x", "key"), seconds=0.0))
    assert made.is_done


def test_a_training_by_one_thread_waits_for_none(tmp_path: Path) -> None:
    assert torch.get_num_threads() == 1
    made = trainer(config(model="rnn", num_epochs=2))
    with crowd():
        made.run(ContentionMonitor(Checkpoint(tmp_path, "x", "key"), seconds=0.0))
    assert made.is_done


def test_a_process_begins_again_with_its_command_and_number(tmp_path: Path) -> None:
    script = tmp_path / "with a space.py"
    script.write_text(
        "import os, sys\n"
        "from seqlm.core.cpu_contention import FEW_SPINS, re_exec\n"
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
