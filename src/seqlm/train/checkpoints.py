"""Checkpoints of an interrupted training, and the lock that keeps two trainings apart.

They live outside the pipeline's outputs, because DVC deletes a stage's outputs before it
runs. A checkpoint's name holds a hash of everything that decides the result, so that one
of other settings, other data or other code is never taken up.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seqlm.core.errors import MachineError
from seqlm.core.files import sha256_of_file, write_bytes
from seqlm.rnn.compiled.processor import has_fma

_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_LOCK_WAIT_S = 10.0


def key_of(*parts: str) -> str:
    """Return a short hash of everything that decides a training's result.

    That is what is given, PyTorch, and whether networks may run as compiled loops, whose states
    and optimisers have a form of their own.
    """
    digest = hashlib.sha256()
    for part in (*parts, torch.__version__, f"compiled: {has_fma()}"):
        digest.update(len(part).to_bytes(_LENGTH_BYTES, "big") + part.encode())
    return digest.hexdigest()[:16]


def code_hashes() -> list[str]:
    """Return hashes of the modules that decide a training's result: those of networks and of training."""
    library = Path(__file__).resolve().parent.parent
    modules = [path for package in ("rnn", "train") for path in sorted((library / package).rglob("*.py"))]
    return [sha256_of_file(path) for path in [library / "core" / "metrics.py", *modules]]


class Checkpoint:
    """One file that holds tensors and plain values, preceded by their SHA-256."""

    def __init__(self, folder: Path, run: str, key: str) -> None:
        self.path = folder / f"{run}-{key}.checkpoint"

    def save(self, tensors: dict[str, torch.Tensor], values: dict[str, Any]) -> None:
        """Replace the checkpoint, whole or not at all."""
        header = json.dumps(values).encode()
        body = len(header).to_bytes(_LENGTH_BYTES, "big") + header + save_tensors(tensors)
        write_bytes(self.path, hashlib.sha256(body).digest() + body)

    def load(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
        """Return what was saved, or None where nothing whole is there."""
        content = self.read()
        return None if content is None else unpacked(content)

    def read(self) -> bytes | None:
        """Return the bytes that :func:`unpacked` takes apart, or None where nothing whole is there."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return body if hashlib.sha256(body).digest() == digest else None

    def remove(self) -> None:
        """Remove the checkpoint: its training is done."""
        self.path.unlink(missing_ok=True)


def unpacked(body: bytes) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return the tensors and values of a checkpoint that was read."""
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
    return load_tensors(body[end:]), json.loads(body[_LENGTH_BYTES:end])


@contextmanager
def run_lock(folder: Path, run: str) -> Iterator[None]:
    """Hold the lock of a run's training; the system frees it however the process ends.

    Raises MachineError where another training of the run does not end in some seconds.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{run}.lock", timeout=_LOCK_WAIT_S)
        lock.acquire()
    except Timeout as error:
        raise MachineError(f"run {run}: another training of it is going on: let it end first") from error
    except OSError as error:
        raise MachineError(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
