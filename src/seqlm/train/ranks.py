"""Processes that train one model together: each takes a share of the lanes of every minibatch.

All of them hold the same weights: their gradients are averaged, so that the same step
follows everywhere. ``torchrun`` starts the processes; without it there is one.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from seqlm.core.errors import MachineError, ParamsError

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    device: torch.device = _CPU
    """Where tensors lie that the processes send each other."""

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and talks."""
        return self.rank == 0

    def share(self, num_lanes: int) -> slice:
        """Return the lanes of this process. Raises ParamsError where they cannot be shared out evenly."""
        if num_lanes % self.size:
            raise ParamsError(f"train.batch_size = {num_lanes}: must be a multiple of the {self.size} processes")
        width = num_lanes // self.size
        return slice(self.rank * width, (self.rank + 1) * width)

    def average(self, tensors: Iterable[Tensor | None]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.size > 1:
            for tensor in tensors:
                if tensor is not None:
                    dist.all_reduce(tensor)
                    tensor.div_(self.size)

    def broadcast(self, content: bytes | None) -> bytes | None:
        """Return, in every process, the bytes that the first one has; what the others have does not count.

        All wait until the first has come here.
        """
        if self.size == 1:
            return content
        length = torch.tensor([len(content or b"")], device=self.device)
        dist.broadcast(length, src=0)
        if not int(length):
            return None
        buffer = torch.empty(int(length), dtype=torch.uint8, device=self.device)
        if self.is_first and content is not None:
            buffer.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        dist.broadcast(buffer, src=0)
        return buffer.cpu().numpy().tobytes()

    def any_rank(self, decision: bool) -> bool:
        """Return the first process's decision, in every process."""
        if self.size == 1:
            return decision
        decisions = [decision]
        dist.broadcast_object_list(decisions)
        return decisions[0]

    def all_gather(self, tensors: list[Tensor]) -> list[list[Tensor]]:
        """Return copies of every process's list of tensors, on the CPU, in every process."""
        mine = [tensor.cpu().clone(memory_format=torch.contiguous_format) for tensor in tensors]
        found: list[list[Tensor]] = [mine] * self.size
        if self.size > 1:
            dist.all_gather_object(found, mine)
        return found

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        if self.size > 1:
            tensor = tensor.clone()
            dist.all_reduce(tensor)
        return tensor


def local_device(device: torch.device) -> torch.device:
    """Return this process's own device: the GPU of its number on this machine, where it works on GPUs."""
    if device.type == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return device


def local_threads(num_threads: int) -> int:
    """Return this process's share of the threads of this machine."""
    return max(num_threads // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)


@contextmanager
def process_group(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that ``torchrun`` started, over gloo on CPUs and nccl on GPUs.

    Raises MachineError where they do not find each other.
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
        raise MachineError(f"the {size} processes of the training do not find each other: {error}") from error
    try:
        yield Ranks(dist.get_rank(), size, device if device.type == "cuda" else _CPU)
    finally:
        dist.destroy_process_group()
