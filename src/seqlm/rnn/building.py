"""From a network's settings to a network, new or stored."""

from pathlib import Path
from pkgutil import resolve_name

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seqlm.core.files import sha256_of_file, write_bytes, write_checksummed
from seqlm.rnn.network import Network, Weights
from seqlm.rnn.settings import KINDS, NetworkSettings
from seqlm.rnn.stored import FORMAT, not_its_weights, read_description, runs_compiled

_CPU = torch.device("cpu")


def build_network(settings: NetworkSettings, vocab_size: int, seed: int, device: torch.device = _CPU) -> Network:
    """Return an untrained network on a device; equal settings and seeds give equal weights everywhere.

    With ``engine: auto``, on a CPU with FMA, the network is its kind's compiled one if there is one.
    """
    kind = KINDS[settings.model]
    make = resolve_name(kind.compiled if kind.compiled and runs_compiled(settings, device) else kind.network)
    network: Network = make(settings, vocab_size, seed)
    return network.to(device)


def save_network(
    folder: Path, run: str, settings: NetworkSettings, vocab_size: int, weights: Weights, engine: str
) -> None:
    """Write ``weights.safetensors``, and ``model.json`` with the settings and the SHA-256 of the weights.

    Of the settings of a training only those of the network are stored, and the engine that trained it.
    """
    path = folder / "weights.safetensors"
    write_bytes(path, save_tensors(weights))
    write_checksummed(
        folder / "model.json",
        {
            "format": FORMAT,
            "run": run,
            "network": settings.model_dump(include=set(NetworkSettings.model_fields)),
            "vocab_size": vocab_size,
            "engine": engine,
            "sha256": sha256_of_file(path),
        },
    )


def load_network(folder: Path, run: str, device: torch.device) -> Network:
    """Return the stored network of a run for tensors. Raises DataError as :func:`read_description` does."""
    (settings, vocab_size), weights = read_description(folder, run), folder / "weights.safetensors"
    network = build_network(settings, vocab_size, seed=0, device=device)
    try:
        network.load_weights(load_tensors(weights.read_bytes()))
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise not_its_weights(weights) from error
    return network.eval()
