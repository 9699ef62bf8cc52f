"""Opening a stored network, with PyTorch only if it is needed."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from seqlm.rnn.array_network import ArrayNetwork
from seqlm.rnn.compiled.network import CompiledNetwork
from seqlm.rnn.settings import KINDS, NetworkSettings
from seqlm.rnn.stored import not_its_weights, read_description, runs_compiled

if TYPE_CHECKING:
    import torch


def open_network(folder: Path, run: str, device: "str | torch.device", num_threads: int) -> ArrayNetwork:
    """Return the stored network of a run, ready to score text; PyTorch is imported only if it computes the network.

    ``device`` may also be ``auto``. Raises DataError as :func:`read_description` does, and MachineError if there is no
    such device.
    """
    settings, vocab_size = read_description(folder, run)
    if runs_compiled(settings, device):
        return _open_compiled(folder / "weights.safetensors", settings, vocab_size, num_threads)
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.rnn.building import load_network

    torch.set_num_threads(num_threads)
    place = resolve_device(device) if isinstance(device, str) else device
    return load_network(folder, run, place).arrays


def _open_compiled(path: Path, settings: NetworkSettings, vocab_size: int, num_threads: int) -> CompiledNetwork:
    name = KINDS[settings.model].parameters
    assert name is not None
    shapes, spec = resolve_name(name)(settings, vocab_size)
    try:
        stored: dict[str, Any] = load_arrays(path.read_bytes())
        parts = [stored[name] for name in shapes]
    except (SafetensorError, KeyError) as error:
        raise not_its_weights(path) from error
    if [part.shape for part in parts] != list(shapes.values()):
        raise not_its_weights(path)
    return CompiledNetwork(spec, np.concatenate([part.reshape(-1) for part in parts]), num_threads)
