"""What others see of a training while it goes on: a history that grows, and TensorBoard's events."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from seqlm.core.errors import MachineError
from seqlm.core.files import write_bytes, write_table
from seqlm.train.history import headline, history_table
from seqlm.train.trainer import Trainer

_SECONDS_BETWEEN_WRITES = 3.0


class HistoryWriter:
    """Writes ``history.csv`` and ``metrics.json`` of a training anew every few seconds, whole or not at all."""

    def __init__(self, folder: Path, seconds: float = _SECONDS_BETWEEN_WRITES) -> None:
        """Write into ``folder``, for the first time when ``seconds`` have passed."""
        self._folder, self._seconds, self._last = folder, seconds, time.monotonic()

    def __call__(self, trainer: Trainer) -> None:
        """Write what the training has come to, the leg that is going on too, if it is time."""
        if time.monotonic() - self._last < self._seconds:
            return
        if trainer.progress.history or trainer.leg_so_far():
            write_table(self._folder, "history", history_table(trainer, with_leg_so_far=True))
            write_table(self._folder, "metrics", headline(trainer, with_leg_so_far=True))
        self._last = time.monotonic()


@contextmanager
def put_back_on_error(*paths: Path) -> Iterator[None]:
    """Leave files as they were, or missing, where what changes them inside this context ends with an error."""
    before = {path: path.read_bytes() if path.exists() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, content in before.items():
            if content is not None:
                write_bytes(path, content)
            elif path.exists():
                path.unlink()
                _remove_if_empty(path.parent)
        raise


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


class Board(Protocol):
    """Where events go: TensorBoard's writer."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Take one value at a step."""
        ...

    def close(self) -> None:
        """Write what was taken."""
        ...


def open_board(folder: Path, run: str) -> Board:
    """Return a writer of TensorBoard's events for a run, in a folder of its own below ``folder``.

    Raises MachineError where TensorBoard is not installed or the folder cannot be written.
    """
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise MachineError("--tensorboard: tensorboard is not installed: pip install -e '.[tensorboard]'") from error
    board: Any = SummaryWriter(str(folder / run))
    found: Board = board
    return found


class Events:
    """Hands each leg of a training to TensorBoard when it has ended; steps are tokens trained."""

    def __init__(self, board: Board, trainer: Trainer) -> None:
        """Begin after the legs that an earlier process has written."""
        self._board, self._written = board, len(trainer.progress.history)

    def __call__(self, trainer: Trainer) -> None:
        """Hand over what is new."""
        for leg in trainer.progress.history[self._written :]:
            for name in ("train_perplexity", "val_perplexity", "grad_norm", "clipped_share", "lr", "epoch"):
                if (value := getattr(leg, name)) is not None:
                    self._board.add_scalar(name, value, leg.tokens)
        self._written = len(trainer.progress.history)
