"""Processes that train one model together: each trains some rows of every minibatch.

All hold the same weights, because they average their gradients and take the same steps. ``torchrun`` starts the
processes; without it there is one.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from seqlm.core.errors import MachineError, ParamsError

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together.

    What these share raises MachineError if another one has ended.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    def own_rows(self, batch_size: int) -> slice:
        """Return this process's rows of a minibatch. Raises ParamsError if the rows cannot be divided evenly."""
        if batch_size % self.size:
            raise ParamsError(f"train.batch_size = {batch_size}: must be a multiple of the {self.size} processes")
        num_rows = batch_size // self.size
        return slice(self.rank * num_rows, (self.rank + 1) * num_rows)

    def broadcast(self, value: T) -> T:
        """Return the first process's value in every process; all wait for the first."""
        values = [value]
        if self.size > 1:
            with _others_answer():
                dist.broadcast_object_list(values)
        return values[0]

    def all_gather(self, tensors: list[Tensor]) -> list[list[Tensor]]:
        """Return copies of every process's list of tensors, on the CPU, in every process."""
        own = [tensor.cpu().clone(memory_format=torch.contiguous_format) for tensor in tensors]
        gathered: list[list[Tensor]] = [own] * self.size
        if self.size > 1:
            with _others_answer():
                dist.all_gather_object(gathered, own)
        return gathered

    def average(self, tensors: Iterable[Tensor | None]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.size > 1:
            with _others_answer():
                for tensor in tensors:
                    if tensor is not None:
                        dist.all_reduce(tensor)
                        tensor.div_(self.size)


ONE_PROCESS = Ranks()


_END_S = 5
"""Seconds in which torchrun ends a machine's other processes after one has ended."""


@contextmanager
def _others_answer() -> Iterator[None]:
    """Turn the error of a lost connection into a MachineError."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        # The process that ended knows why. This one speaks only if that was on another machine.
        time.sleep(_END_S)
        raise MachineError(
            "a training process on another machine has ended: the same command continues from the last checkpoint"
        ) from error


def local_device(device: torch.device) -> torch.device:
    """Return this process's own device: with CUDA, the GPU of its number on this machine."""
    if device.type == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return device


def local_threads(num_threads: int) -> int:
    """Return this process's share of the threads of this machine."""
    return max(num_threads // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)


@contextmanager
def process_group(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that ``torchrun`` started, with gloo on CPUs and nccl on GPUs.

    Raises MachineError if they do not find each other.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    except (RuntimeError, ValueError) as error:
        raise MachineError(f"the {size} training processes cannot find each other: {error}") from error
    try:
        yield Ranks(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()
