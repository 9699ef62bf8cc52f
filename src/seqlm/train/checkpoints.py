"""Checkpoints of interrupted training runs, and the lock that keeps two processes from training one run.

They are kept outside the pipeline's outputs, because DVC deletes a stage's outputs before it runs the stage. A
checkpoint's name holds a hash of everything that decides the result, so that one of other settings, other data or other
code is never used.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from seqlm.core.compiling import has_fma
from seqlm.core.errors import MachineError
from seqlm.core.files import remove_others, sha256_of_file, write_bytes
from seqlm.networks.network import State
from seqlm.train.ranks import ONE_PROCESS, Ranks
from seqlm.train.settings import RunConfig
from seqlm.vocab.vocabulary import Vocab

_SOURCES = Path(__file__).resolve().parents[1]
_DIGEST_BYTES = 32
_VALUES = "values"
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
    """One file of tensors and plain values, preceded by their SHA-256."""

    def __init__(self, folder: Path, key: str) -> None:
        """``folder`` holds the checkpoints of one run."""
        self.path = folder / f"{key}.checkpoint"

    def save(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Replace the checkpoint, completely or not at all."""
        header = torch.frombuffer(bytearray(json.dumps(values).encode()), dtype=torch.uint8)
        body = save_tensors(tensors | {_VALUES: header})
        write_bytes(self.path, hashlib.sha256(body).digest() + body)

    def load(self, ranks: Ranks = ONE_PROCESS) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return what was saved, or None if there is no undamaged checkpoint.

        Processes on several machines each have their own folder: all load the checkpoint of the first.
        """
        content = ranks.broadcast(self.path.read_bytes() if ranks.is_first and self.path.exists() else b"")
        digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() != digest:
            return None
        tensors = load_tensors(body)
        return tensors, json.loads(tensors.pop(_VALUES).numpy().tobytes())

    def remove_all(self) -> None:
        """Remove all checkpoints of the run: their settings, data or code may have been others."""
        remove_others([_LOCK], self.path.parent)


def run_lock(folder: Path) -> AbstractContextManager[object]:
    """Take the lock of a run's training in ``folder``, where its checkpoints are.

    The system releases it however the process ends. Raises MachineError if another process trains the run, and does not
    finish within some seconds.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / _LOCK, timeout=_LOCK_TIMEOUT_S).acquire()
    except Timeout as error:
        raise MachineError(f"run {folder.name}: another process is training it: wait until it has finished") from error
    except OSError as error:
        raise MachineError(f"{folder}: cannot be written: {error.strerror}") from error


def flatten_state(state: State) -> list[Tensor]:
    """Return the tensors of a network's state: the state itself, or those of its parts, in order."""
    if isinstance(state, Tensor | np.ndarray):
        return [torch.as_tensor(state)]
    return [tensor for part in state for tensor in flatten_state(part)]


def unflatten_state(template: State, tensors: Iterator[Tensor]) -> State:
    """Return a state of the same structure as ``template`` that holds the next of ``tensors``."""
    if isinstance(template, Tensor | np.ndarray):
        found = next(tensors)
        return found if isinstance(template, Tensor) else found.numpy()
    return type(template)(unflatten_state(part, tensors) for part in template)
