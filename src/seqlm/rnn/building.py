"""From a network's settings to a network, new or stored."""

from pathlib import Path
from pkgutil import resolve_name

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_checksummed, sha256_of_file, write_bytes, write_checksummed
from seqlm.core.settings import check
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.network import Network, Weights
from seqlm.rnn.settings import KINDS, NetworkSettings

FORMAT = 3
_ADVICE = "train again"
_CPU = torch.device("cpu")


def build_network(settings: NetworkSettings, vocab_size: int, seed: int, device: torch.device = _CPU) -> Network:
    """Return an untrained network on a device; equal settings and seeds give equal weights everywhere.

    With ``engine: auto``, on a CPU with FMA, the network is its kind's compiled one if there is one.
    """
    kind = KINDS[settings.model]
    is_compiled = settings.engine == "auto" and device.type == "cpu" and has_fma()
    make = resolve_name(kind.compiled if kind.compiled and is_compiled else kind.network)
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
    """Return the stored network of a run, ready to score text.

    Raises DataError if a file is missing, changed, of another format, of other settings, or of another run.
    """
    path, weights = folder / "model.json", folder / "weights.safetensors"
    description = read_checksummed(path, FORMAT, _ADVICE)
    if description["run"] != run:
        raise DataError(f"{folder}: holds the run {description['run']!r}, not {run!r}: {_ADVICE}")
    if sha256_of_file(weights) != description["sha256"]:
        raise DataError(f"{weights}: its content does not match the SHA-256 in model.json: {_ADVICE}")
    try:
        settings = check(description["network"], "network", NetworkSettings, source=str(path))
    except ParamsError as error:  # a setting is newer than the stored network, or older than this version
        raise DataError(f"{error}: {_ADVICE}") from error
    network = build_network(settings, description["vocab_size"], seed=0, device=device)
    try:
        network.load_weights(load_tensors(weights.read_bytes()))
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise DataError(f"{weights}: not the weights of this model: {_ADVICE}") from error
    return network.eval()
