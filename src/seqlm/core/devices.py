"""Where tensors live."""

import torch

from seqlm.core.errors import MachineError
from seqlm.core.processes import default_processes

_WITHOUT_DOUBLE = {"mps"}


def resolve_device(name: str) -> torch.device:
    """Return the device of this name; ``auto`` is the first of cuda, mps, cpu that is there.

    Raises MachineError where the device is missing: training never moves to the CPU unasked.
    """
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, is_there in present.items() if is_there))
    if not present[name]:
        there = ", ".join(kind for kind, is_there in present.items() if is_there)
        raise MachineError(f"device: {name}: this machine has none: set device to auto or one of: {there}")
    return torch.device(name)


def processes_that_learn() -> int:
    """Return how many processes may share small trainings out.

    Where there is an accelerator PyTorch starts threads with the first gradient, on whichever device it is, and
    refuses gradients in copies of a process that has them: there it is one.
    """
    return 1 if torch.accelerator.is_available() else default_processes()


def in_double(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in double precision where it lies, or on the CPU where its device has none (mps)."""
    return (tensor.cpu() if tensor.device.type in _WITHOUT_DOUBLE else tensor).double()
