"""What ends a training before its end, or keeps it from beginning: Ctrl-C, and another process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from seqlm.core.errors import Interrupted, MachineError
from seqlm.core.files import remove_others
from seqlm.train.callbacks import Checkpoint
from seqlm.train.trainer import Callback, Trainer

_LOCK = "lock"
_LOCK_TIMEOUT_S = 10.0


def run_lock(folder: Path) -> AbstractContextManager[object]:
    """Take the lock of a run's training in ``folder``, where its checkpoints are.

    The system releases it however the process ends. Raises MachineError if another process trains
    the run, and does not finish within some seconds.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / _LOCK, timeout=_LOCK_TIMEOUT_S).acquire()
    except Timeout as error:
        raise MachineError(
            f"run {folder.name}: another process is training it: wait until it has finished"
        ) from error


def remove_checkpoints(folder: Path) -> None:
    """Remove all checkpoints of a run: their settings, data or code may have been others."""
    remove_others([_LOCK], folder)


@contextmanager
def stop_at_ctrl_c(checkpoint: Checkpoint) -> Iterator[Callback]:
    """Give a callback that saves a checkpoint and raises Interrupted after Ctrl-C.

    Ctrl-C again ends the process at once.
    """
    with _ctrl_c() as pressed:

        def stop(trainer: Trainer) -> None:
            if trainer.can_be_saved and trainer.ranks.broadcast(pressed.is_set()):
                checkpoint.save(trainer)
                name = os.environ.get("DVC_EXP_NAME")  # only `dvc exp run` stores an experiment
                again = f"dvc exp run --name {name}" if name else "dvc repro"
                epoch = f"{trainer.progress.epoch:.4g}"
                raise Interrupted(f"interrupted at epoch {epoch}; `{again}` continues from there")

        yield stop


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Give an event that is set by the first Ctrl-C. A process that a shell started in the
    background still ignores Ctrl-C."""
    pressed, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
