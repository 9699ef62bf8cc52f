"""Checkpoints, and the lock that keeps two trainings apart."""

from pathlib import Path

import pytest
import torch

from seqlm.core.errors import MachineError
from seqlm.train.checkpoints import Checkpoint, run_lock


def test_a_damaged_checkpoint_is_not_taken_up(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "x", "key")
    assert checkpoint.load() is None
    checkpoint.save({"a": torch.ones(2)}, {"b": 1})
    found = checkpoint.load()
    assert found is not None
    assert found[1] == {"b": 1}
    content = bytearray(checkpoint.path.read_bytes())
    content[-1] ^= 1
    checkpoint.path.write_bytes(content)
    assert checkpoint.load() is None


def test_two_trainings_of_one_run_do_not_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.train.checkpoints._LOCK_WAIT_S", 0.3)
    with run_lock(tmp_path, "x"), pytest.raises(MachineError, match="another training"), run_lock(tmp_path, "x"):
        pass
    with run_lock(tmp_path, "x"):
        pass
