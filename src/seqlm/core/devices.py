"""Devices that hold tensors."""

from seqlm.core.errors import MachineError, needs_extra


def resolve_device(name: str) -> str:
    """Return the name of the device; ``auto`` is the first of cuda, mps, cpu that is available.

    Raises MachineError if the device is missing: training never moves to the CPU unasked.
    """
    if name == "cpu":
        return name
    with needs_extra("torch", f"the device {name!r}"):
        import torch
    is_available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    available = [device for device, found in is_available.items() if found]
    if name != "auto" and name not in available:
        raise MachineError(
            f"device: {name}: this machine has none: set device to auto or one of: "
            f"{', '.join(available)}"
        )
    return available[0] if name == "auto" else name
