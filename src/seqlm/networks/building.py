"""From a network's settings to a network, new or stored, with PyTorch only if it is needed."""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from seqlm.core.compiling import has_fma
from seqlm.core.errors import DataError, needs_extra
from seqlm.core.files import write_bytes
from seqlm.core.layout import NETWORK_FILES
from seqlm.core.stored import VocabKey, read_verified, require_vocab
from seqlm.networks.architectures import ARCHITECTURES
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.compiled.weights import COMPILED_MODELS, shapes_of
from seqlm.networks.initial import initial_weights, weights_rng
from seqlm.networks.network import Network
from seqlm.networks.settings import NetworkFile, NetworkSettings

if TYPE_CHECKING:
    import torch

    from seqlm.networks.torch_network import TorchNetwork

_MAX_HEADER = 1 << 20
"""Bytes of a file of weights besides the weights."""
_DESCRIPTION, _WEIGHTS = NETWORK_FILES


def build_network(
    settings: NetworkSettings,
    vocab_size: int,
    seed: int,
    device: "str | torch.device" = "cpu",
    num_threads: int = 1,
) -> Network:
    """Return an untrained network on a device.

    Equal settings and seeds give equal weights everywhere. On a CPU with FMA it runs as compiled
    loops, if the model has them and ``engine: auto``: PyTorch is not imported then.
    """
    rng = weights_rng(seed)
    if _runs_compiled(settings, device):
        weights = initial_weights(settings, shapes_of(settings, vocab_size), rng)
        return CompiledNetwork(settings, vocab_size, weights, num_threads)
    with needs_extra("torch", f"a network ({settings.model}, device {str(device)!r})"):
        import torch
    torch.set_num_threads(num_threads)
    create = resolve_name(ARCHITECTURES[settings.model].network)
    network: TorchNetwork = create(settings, vocab_size)
    network.settings = settings
    network.load_weights(initial_weights(settings, _shapes_of_torch(network), rng))
    return network.to(device)


def _shapes_of_torch(network: "TorchNetwork") -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in network.named_weights().items()}


def save_network(
    folder: Path,
    run: str,
    settings: NetworkSettings,
    vocab: VocabKey,
    weights: Mapping[str, NDArray[np.float32]],
    info: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Write ``weights.safetensors``, and ``model.json``, the description of the model.

    ``info`` says what the model is. Of the settings only those of the network are stored, with the
    key of the vocabulary and the SHA-256 of the weights. ``defaults``: the device and the number of
    threads, if the model is opened without others.
    """
    content = save_arrays(dict(weights))
    write_bytes(folder / _WEIGHTS, content)
    metadata = {
        "network": settings.model_dump(include=set(NetworkSettings.model_fields)),
        "vocab": vocab,
        "sha256": hashlib.sha256(content).hexdigest(),
        "defaults": dict(defaults or {}),
    }
    description = NetworkFile(model={"name": run} | dict(info or {}), metadata=metadata)
    description.write(folder / _DESCRIPTION)


def open_network(folder: Path, run: str, vocab: VocabKey, device: str, num_threads: int) -> Network:
    """Return the stored network of a run, ready to score text.

    PyTorch is imported only if it computes the network, or to look for a GPU if ``device`` is
    ``auto``. Raises DataError if a file is missing, was changed, or has another format, settings,
    vocabulary or run, and MachineError if there is no such device or no PyTorch.
    """
    settings, weights = read_weights(folder, run, vocab)
    if _runs_compiled(settings, device):
        return CompiledNetwork(settings, vocab[0], weights, num_threads)
    from seqlm.core.devices import resolve_device

    network = build_network(settings, vocab[0], 0, resolve_device(device), num_threads)
    network.load_weights(weights)
    return network


def _runs_compiled(settings: NetworkSettings, device: "str | torch.device") -> bool:
    """Return whether a network runs as compiled loops: on a CPU with FMA, if the model has them and
    ``engine: auto``."""
    return (
        settings.engine == "auto"
        and str(device) == "cpu"
        and has_fma()
        and settings.model in COMPILED_MODELS
    )


def read_weights(
    folder: Path, run: str, vocab: VocabKey
) -> tuple[NetworkSettings, dict[str, NDArray[np.float32]]]:
    """Return the settings of a stored network, and its weights by name.

    Raises DataError if a file is missing, was changed, or has another format, vocabulary or run,
    and if the weights are not those of the settings.
    """
    path, weights_path = folder / _DESCRIPTION, folder / _WEIGHTS
    description = NetworkFile.read(path)
    name, metadata, advice = description.model["name"], description.metadata, description.advice
    if name != run:
        raise DataError(f"{folder}: holds the run {name!r}, not {run!r}: {advice}")
    require_vocab(path, metadata.vocab, vocab, advice)
    shapes = _shapes_of(metadata.network, vocab[0])
    size = 4 * sum(map(math.prod, shapes.values())) + _MAX_HEADER
    content = read_verified(weights_path, metadata.sha256, advice, size)
    try:
        weights: dict[str, NDArray[np.float32]] = load_arrays(content)
    except Exception as error:  # the library has no class for all of its errors
        raise DataError(f"{weights_path}: no weights ({error}): {advice}") from error
    if {name: array.shape for name, array in weights.items()} != shapes:
        raise DataError(f"{weights_path}: weights of other names or shapes: {advice}")
    for name, array in weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            problem = "not of finite numbers in single precision"
            raise DataError(f"{weights_path}: {name}: {problem}: {advice}")
    return metadata.network, weights


def _shapes_of(settings: NetworkSettings, vocab_size: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's weights by name, without memory for them."""
    if settings.model in COMPILED_MODELS:
        return shapes_of(settings, vocab_size)
    with needs_extra("torch", f"a network ({settings.model}, device 'cpu')"):
        import torch
    with torch.device("meta"):
        return _shapes_of_torch(
            resolve_name(ARCHITECTURES[settings.model].network)(settings, vocab_size)
        )
