"""From a network's settings to a network, new or stored."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seqlm.core.errors import DataError
from seqlm.core.files import read_checksummed, sha256_of_file, write_bytes, write_checksummed
from seqlm.core.settings import check
from seqlm.rnn.compiled_rnn import repays_compiling
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.gated import GatedRNN
from seqlm.rnn.network import Network, Weights
from seqlm.rnn.scratch import ScratchRNN
from seqlm.rnn.settings import NetworkSettings

FORMAT = 2
_ADVICE = "train again"
_CPU = torch.device("cpu")


def build_network(settings: NetworkSettings, vocab_size: int, seed: int, device: torch.device = _CPU) -> Network:
    """Return an untrained network on a device; equal settings and seeds give equal weights everywhere.

    On a CPU, large networks of gru and lstm cells run as compiled loops.
    """
    network = init_network(settings, vocab_size, seed)
    if not settings.has_gates or device.type != "cpu" or not repays_compiling(settings.num_hiddens):
        return network.to(device)
    compiled = GatedRNN.of(settings, vocab_size)
    compiled.load_weights(network.weights())
    return compiled


def init_network(settings: NetworkSettings, vocab_size: int, seed: int) -> Network:
    """Return an untrained network on the CPU: the one from scratch, or the framework's layers."""
    if settings.model == "scratch":
        generator = torch.Generator().manual_seed(seed)
        return ScratchRNN(vocab_size, settings.num_hiddens, settings.activation, generator)
    return FrameworkRNN(
        vocab_size,
        model=settings.model,
        num_hiddens=settings.num_hiddens,
        num_layers=settings.num_layers,
        embedding_size=settings.size_of_embedding,
        tie_weights=settings.tie_weights,
        dropout=settings.dropout,
        activation=settings.activation,
        seed=seed,
    )


def save_network(folder: Path, run: str, settings: NetworkSettings, vocab_size: int, weights: Weights) -> None:
    """Write ``weights.safetensors`` and, beside it, ``model.json`` with the settings and the weights' SHA-256.

    Of ``settings``, which a training's may extend, only what makes the network is kept.
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
            "sha256": sha256_of_file(path),
        },
    )


def load_network(folder: Path, run: str, device: torch.device) -> Network:
    """Return the stored network of a run, ready to score text.

    Raises DataError where a file is missing, changed, of another format, or of another run.
    """
    description, path = read_checksummed(folder / "model.json", FORMAT, _ADVICE), folder / "weights.safetensors"
    if description["run"] != run:
        raise DataError(f"{folder}: holds the run {description['run']!r}, not {run!r}: {_ADVICE}")
    if sha256_of_file(path) != description["sha256"]:
        raise DataError(f"{path}: its content does not match the SHA-256 in model.json: {_ADVICE}")
    settings = check(description["network"], "network", NetworkSettings, source=str(folder / "model.json"))
    network = build_network(settings, description["vocab_size"], seed=0, device=device)
    try:
        network.load_weights(load_tensors(path.read_bytes()))
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise DataError(f"{path}: not the weights of this model: {_ADVICE}") from error
    return network.eval()
