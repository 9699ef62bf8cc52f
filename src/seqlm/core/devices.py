"""Where tensors live."""

import torch

from seqlm.core.errors import MachineError

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


def in_double(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in double precision where it lies, or on the CPU where its device has none (mps)."""
    return (tensor.cpu() if tensor.device.type in _WITHOUT_DOUBLE else tensor).double()
