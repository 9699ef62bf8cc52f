"""What happens while a training runs: checkpoints, a growing history, TensorBoard's events, a stop by Ctrl-C."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqlm.core.errors import Interrupted, MachineError
from seqlm.core.files import write_bytes, write_table
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.history import headline, history_table
from seqlm.train.trainer import MINIBATCHES_BETWEEN_CHECKS, Callback, Trainer

_SECONDS_BETWEEN_WRITES = 3.0
_TENSORBOARD_COLUMNS = ("train_perplexity", "val_perplexity", "grad_norm", "clipped_share", "lr", "epoch")


def history_writer(folder: Path, seconds: float = _SECONDS_BETWEEN_WRITES) -> Callback:
    """Return a callback that rewrites ``history.csv`` and ``metrics.json`` in ``folder`` every few ``seconds``."""
    last = time.monotonic()

    def write(trainer: Trainer) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds and (rows := trainer.rows_so_far()):
            write_table(folder, "history", history_table(trainer.config.run, rows))
            write_table(folder, "metrics", headline(rows[-1]))
            last = time.monotonic()

    return write


@contextmanager
def restored_on_error(*paths: Path) -> Iterator[None]:
    """Leave files of one folder as they were, or missing, if the code inside this context ends with an error."""
    before = {path: path.read_bytes() for path in paths if path.exists()}
    try:
        yield
    except BaseException:
        for path in paths:
            if path in before:
                write_bytes(path, before[path])
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            paths[0].parent.rmdir()  # if it is empty now
        raise


def checkpoint_writer(checkpoint: Checkpoint, seconds: float) -> Callback:
    """Return a callback that saves a checkpoint every ``seconds``, within epochs too; all processes save together."""
    last = time.monotonic()

    def save(trainer: Trainer) -> None:
        nonlocal last
        ranks = trainer.ranks
        every = 1 if ranks.size == 1 else MINIBATCHES_BETWEEN_CHECKS
        if trainer.is_done or trainer.progress.minibatches % every:
            return
        if ranks.broadcast(time.monotonic() - last >= seconds):
            state = trainer.state()
            if ranks.is_first:
                checkpoint.save(*state)
            last = time.monotonic()

    return save


@contextmanager
def stop_at_interrupt(checkpoint: Checkpoint) -> Iterator[Callback]:
    """Give a callback that, after Ctrl-C, saves a checkpoint and raises Interrupted.

    Python would stop the training within a minibatch, whose state cannot be saved. A second Ctrl-C does that.
    """
    is_requested = False

    def request(*_: object) -> None:
        nonlocal is_requested
        is_requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def stop(trainer: Trainer) -> None:
        if is_requested:
            checkpoint.save(*trainer.state())
            raise Interrupted(f"interrupted at epoch {trainer.progress.epoch:.4g}; `dvc repro` continues from there")

    previous = signal.signal(signal.SIGINT, request)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def tensorboard_writer(folder: Path, trainer: Trainer) -> Iterator[Callback]:
    """Give a callback that writes new history rows as TensorBoard's events to ``folder``; steps are tokens trained.

    Raises MachineError if TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise MachineError("--tensorboard: tensorboard is not installed: pip install -e '.[tensorboard]'") from error
    num_written = len(trainer.progress.history)  # an earlier process has written these

    def write(trainer: Trainer) -> None:
        nonlocal num_written
        for row in trainer.progress.history[num_written:]:
            for name in _TENSORBOARD_COLUMNS:
                if (value := getattr(row, name)) is not None:
                    board.add_scalar(name, value, row.tokens)
        num_written = len(trainer.progress.history)

    with SummaryWriter(str(folder / trainer.config.run)) as board:
        yield write
