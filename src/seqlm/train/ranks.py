"""Processes that train one model together: each trains some rows of every minibatch.

All hold the same weights, because they average their gradients and take the same steps.
``torchrun`` starts the processes; without it there is one.
"""

import math
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from seqlm.core.errors import MachineError, ParamsError

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together. Every exchange raises MachineError if another
    process has ended."""

    rank: int = 0
    """The first process, 0, writes and prints."""
    size: int = 1

    def shard(self, batch_size: int) -> slice:
        """Return this process's rows of a minibatch. Raises ParamsError if the rows cannot be
        divided evenly."""
        if batch_size % self.size:
            raise ParamsError(
                f"train.batch_size = {batch_size}: must be a multiple of the {self.size} processes"
            )
        num_rows = batch_size // self.size
        return slice(self.rank * num_rows, (self.rank + 1) * num_rows)

    def broadcast(self, value: T) -> T:
        """Return the first process's value in every process; all wait for the first."""
        values = [value]
        if self.size > 1:
            _together("broadcast_object_list", values)
        return values[0]

    def all_gather(self, value: T) -> list[T]:
        """Return every process's value, in every process."""
        values = [value] * self.size
        if self.size > 1:
            _together("all_gather_object", values, value)
        return values

    def mean(self, value: float) -> float:
        """Return the mean of a number over all processes."""
        return math.fsum(self.all_gather(value)) / self.size

    def average(self, arrays: Iterable[Any]) -> None:
        """Replace each array or tensor by its mean over all processes, in place."""
        if self.size == 1:
            return
        import torch

        for array in arrays:
            tensor = torch.as_tensor(array)  # the same memory
            _together("all_reduce", tensor)
            tensor.div_(self.size)


ONE_PROCESS = Ranks()


def _together(operation: str, *arguments: Any) -> None:
    """Call a function of ``torch.distributed``."""
    import torch

    try:
        getattr(torch.distributed, operation)(*arguments)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError) as error:
        _end(error)


def _end(error: object, _: object = None) -> NoReturn:
    """Raise MachineError: another process has ended. Also handles SIGTERM, by which torchrun ends
    the rest."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    cause = error if isinstance(error, Exception) else None
    why = (
        "another training process has ended or does not answer: the same command continues from "
        "the last checkpoint"
    )
    raise MachineError(why) from cause


@contextmanager
def process_group(device: str) -> Iterator[Ranks]:
    """Join the processes that ``torchrun`` started; each GPU has one. Raises MachineError if they
    do not meet."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ONE_PROCESS
        return
    import torch
    import torch.distributed as dist

    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    signal.signal(signal.SIGTERM, _end)  # as torchrun ends the others if one fails
    _together("init_process_group")
    try:
        yield Ranks(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()
