"""Checkpoints, what decides whether one is used, and the lock that keeps two trainings apart."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from seqlm.core.errors import MachineError
from seqlm.train.checkpoints import Checkpoint, checkpoint_key, run_lock
from smoke import ROOT
from stages_by_hand import run_python, succeeded


def test_a_damaged_checkpoint_is_not_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "key")
    assert checkpoint.load() is None
    checkpoint.save({"a": torch.ones(2)}, {"b": 1})
    tensors, values = checkpoint.load() or ({}, {})
    assert (tensors["a"].tolist(), values) == ([1, 1], {"b": 1})
    content = bytearray(checkpoint.path.read_bytes())
    content[-1] ^= 1
    checkpoint.path.write_bytes(content)
    assert checkpoint.load() is None


def test_other_settings_data_and_processes_have_other_checkpoints() -> None:
    trainings = ("a", ["b"], 1), ("ab", [""], 1), ("a", ["c"], 1), ("a", ["b"], 2)
    keys = [checkpoint_key(*training) for training in trainings]
    assert keys[0] == checkpoint_key("a", ["b"], 1)
    assert len(set(keys)) == len(keys)


CODE = """
import json, sys
from pathlib import Path
from seqlm.train.trainer import Trainer
loaded = sorted(module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "seqlm")
from seqlm.train.checkpoints import _TRAINER, checkpoint_key, imported_files
def key_after_change(name):
    path = Path(sys.argv[1], name)
    path.write_text(path.read_text() + "# changed\\n")
    return checkpoint_key("", [], 1)
print(json.dumps({
    "loaded": loaded, "hashed": [str(path) for path in imported_files(_TRAINER)],
    "keys": [key_after_change(name) for name in sys.argv[2:]],
    "unchanged": checkpoint_key("", [], 1),
}))
"""


def test_other_code_has_other_checkpoints(tmp_path: Path) -> None:
    """All code that a training runs, and only that: a change of how its progress is shown does not matter."""
    before = checkpoint_key("", [], 1)
    package = tmp_path / "seqlm"
    shutil.copytree(ROOT / "src/seqlm", package, ignore=shutil.ignore_patterns("__pycache__"))
    changed = ["train/callbacks.py", "core/optimizer.py", "rnn/compiled/tiles.py", "rnn/transformer.py"]
    found = json.loads(succeeded(run_python(CODE, package, *changed, PYTHONPATH=str(tmp_path))))
    assert set(found["loaded"]) <= set(found["hashed"])
    callbacks, *others = found["keys"]
    assert callbacks == before
    assert len({callbacks, *others}) == 4
    assert found["unchanged"] == others[-1]


def test_two_trainings_of_one_run_do_not_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.train.checkpoints._LOCK_TIMEOUT_S", 0.3)
    with run_lock(tmp_path / "x"):
        with pytest.raises(MachineError, match="run x: another training of it is running"):
            run_lock(tmp_path / "x")
        with run_lock(tmp_path / "y"):
            pass
    with run_lock(tmp_path / "x"):
        pass
