"""Checkpoints of interrupted training runs, and the lock that keeps two processes from training one run.

They are kept outside the pipeline's outputs, because DVC deletes a stage's outputs before it runs the stage. A
checkpoint's name holds a hash of everything that decides the result, so that one of other settings, other data or other
code is never used.
"""

import hashlib
import json
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from seqlm.core.compiling import has_fma
from seqlm.core.errors import MachineError
from seqlm.core.files import remove_others, replacing, sha256_of_file
from seqlm.train.ranks import ONE_PROCESS, Ranks
from seqlm.train.settings import RunConfig
from seqlm.vocab.vocabulary import Vocab

_SOURCES = Path(__file__).resolve().parents[1]
_LOCK = "lock"
_LOCK_TIMEOUT_S = 10.0


def checkpoint_key(config: RunConfig, vocab: Vocab, num_processes: int) -> str:
    """Return a hash of everything that decides the result of training: its config and its data.

    ``vocab`` has the hashes of the encoded splits. The key also depends on all code of this package as it is now, on
    PyTorch's version, and on whether networks may run as compiled loops, whose states and optimizers have their own
    form.
    """
    data = [encoded.sha256 for encoded in vocab.splits.values()]
    parts = [config.model_dump_json(), *data, num_processes, torch.__version__, has_fma()]
    parts += [sha256_of_file(path) for path in sorted(_SOURCES.rglob("*.py"))]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


class Checkpoint:
    """One file of tensors and plain values."""

    def __init__(self, folder: Path, key: str) -> None:
        """``folder`` holds the checkpoints of one run."""
        self.path = folder / f"{key}.checkpoint"

    def save(self, state: dict[str, Any]) -> None:
        """Replace the checkpoint, completely or not at all."""
        with replacing(self.path) as temporary:
            torch.save(state, temporary)  # noqa: TID251 (tensors and plain values)

    def load(self, ranks: Ranks = ONE_PROCESS) -> dict[str, Any] | None:
        """Return what was saved, or None if there is no complete checkpoint.

        Processes on several machines each have their own folder: all load the checkpoint of the first.
        """
        state = None
        if ranks.rank == 0 and self.path.exists():
            with suppress(Exception):  # a broken file may raise anything
                state = torch.load(self.path, map_location="cpu", weights_only=True)  # noqa: TID251 (it runs no code)
        return ranks.broadcast(state)

    def remove_all(self) -> None:
        """Remove all checkpoints of the run: their settings, data or code may have been others."""
        remove_others([_LOCK], self.path.parent)


def run_lock(folder: Path) -> AbstractContextManager[object]:
    """Take the lock of a run's training in ``folder``, where its checkpoints are.

    The system releases it however the process ends. Raises MachineError if another process trains the run, and does not
    finish within some seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / _LOCK, timeout=_LOCK_TIMEOUT_S).acquire()
    except Timeout as error:
        raise MachineError(f"run {folder.name}: another process is training it: wait until it has finished") from error
