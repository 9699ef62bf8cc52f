"""From a network's settings to a network, new or stored, with PyTorch only if it is needed."""

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from seqlm.core.compiling import has_fma
from seqlm.core.errors import DataError, ParamsError, needs_extra
from seqlm.core.files import (
    VocabKey,
    read_checksummed,
    require_vocab,
    sha256_of_file,
    verify_sha256,
    write_bytes,
    write_checksummed,
)
from seqlm.core.layout import MODEL_FORMAT, NETWORK_FILES
from seqlm.core.settings import check
from seqlm.networks.architectures import ARCHITECTURES
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.compiled.weights import COMPILED_MODELS, shapes_of
from seqlm.networks.initial import initial_weights, weights_rng
from seqlm.networks.network import Network
from seqlm.networks.settings import NetworkSettings

if TYPE_CHECKING:
    import torch

    from seqlm.networks.torch_network import TorchNetwork

_ADVICE = "train again"
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
    shapes = {name: tuple(weight.shape) for name, weight in network.named_weights().items()}
    network.load_weights(initial_weights(settings, shapes, rng))
    return network.to(device)


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
    path = folder / _WEIGHTS
    write_bytes(path, save_arrays(dict(weights)))
    write_checksummed(
        folder / _DESCRIPTION,
        {
            "format": MODEL_FORMAT,
            "model": {"name": run} | dict(info or {}),
            "metadata": {
                "network": settings.model_dump(include=set(NetworkSettings.model_fields)),
                "vocab": list(vocab),
                "sha256": sha256_of_file(path),
                "defaults": dict(defaults or {}),
            },
        },
    )


def open_network(folder: Path, run: str, vocab: VocabKey, device: str, num_threads: int) -> Network:
    """Return the stored network of a run, ready to score text.

    PyTorch is imported only if it computes the network, or to look for a GPU if ``device`` is
    ``auto``. Raises DataError if a file is missing, was changed, or has another format, settings,
    vocabulary or run, and MachineError if there is no such device or no PyTorch.
    """
    stored, weights = read_weights(folder, run, vocab)
    try:
        settings = check(stored, "network", NetworkSettings, source=str(folder / _DESCRIPTION))
    except ParamsError as error:
        # a setting is newer than the stored network, or older than this version
        raise DataError(f"{error}: {_ADVICE}") from error
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


def read_weights(folder: Path, run: str, vocab: VocabKey) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of a stored network, unchecked, and its weights by name.

    Raises DataError if a file is missing, was changed, or has another format, vocabulary or run.
    """
    path, weights = folder / _DESCRIPTION, folder / _WEIGHTS
    description = read_checksummed(path, MODEL_FORMAT, _ADVICE)
    name, metadata = description["model"]["name"], description["metadata"]
    if name != run:
        raise DataError(f"{folder}: holds the run {name!r}, not {run!r}: {_ADVICE}")
    require_vocab(path, metadata["vocab"], vocab, _ADVICE)
    verify_sha256(weights, metadata["sha256"], path.name, _ADVICE)
    return metadata["network"], load_arrays(weights.read_bytes())
