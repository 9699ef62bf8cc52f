"""From a run's settings to a model, new or stored."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seqlm.errors import DataError
from seqlm.files import read_sealed, sha256_of_file, write_bytes, write_sealed
from seqlm.params.loading import check
from seqlm.params.train import RunConfig
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scratch import ScratchRNN

Model = ScratchRNN | FrameworkRNN

FORMAT = 1


def build_model(config: RunConfig, vocab_size: int) -> Model:
    """Return an untrained model on the CPU; equal settings give equal weights."""
    if config.model == "scratch":
        generator = torch.Generator().manual_seed(config.seed)
        return ScratchRNN(vocab_size, config.num_hiddens, config.activation, generator)
    return FrameworkRNN(
        vocab_size,
        model=config.model,
        num_hiddens=config.num_hiddens,
        num_layers=config.num_layers,
        embedding_size=None if config.embedding == "one_hot" else config.embedding_size or config.num_hiddens,
        tie_weights=config.tie_weights,
        dropout=config.dropout,
        activation=config.activation,
        seed=config.seed,
    )


def model_weights(model: Model) -> dict[str, torch.Tensor]:
    """Return copies of a model's weights by name, on the CPU; tied weights come once."""
    if isinstance(model, ScratchRNN):
        named = model.named_weights()
    else:
        named = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return {name: weight.cpu().clone() for name, weight in named.items()}


def set_weights(model: Model, weights: dict[str, torch.Tensor]) -> None:
    """Copy weights, as :func:`model_weights` returns them, into a model."""
    if isinstance(model, ScratchRNN):
        model.load_weights(weights)
        return
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])


def save_model(folder: Path, model_config: RunConfig, vocab_size: int, weights: dict[str, torch.Tensor]) -> None:
    """Write ``weights.safetensors`` and, beside it, ``model.json`` with the settings and the weights' SHA-256."""
    path = folder / "weights.safetensors"
    write_bytes(path, save_tensors(weights))
    write_sealed(
        folder / "model.json",
        {
            "format": FORMAT,
            "config": model_config.model_dump(),
            "vocab_size": vocab_size,
            "sha256": sha256_of_file(path),
        },
    )


def load_model(folder: Path, device: torch.device, *, run: str | None = None) -> Model:
    """Return a stored model, ready to score text.

    Raises DataError where a file is missing, changed, of another format, or of another
    run than ``run``.
    """
    description, path = read_sealed(folder / "model.json", FORMAT, "train again"), folder / "weights.safetensors"
    config = check(description["config"], "config", RunConfig, source=str(folder / "model.json"))
    if run is not None and config.run != run:
        raise DataError(f"{folder}: holds the run {config.run!r}, not {run!r}: train again")
    if sha256_of_file(path) != description["sha256"]:
        raise DataError(f"{path}: its content does not match the SHA-256 in model.json: train again")
    model = build_model(config, description["vocab_size"])
    try:
        set_weights(model, load_tensors(path.read_bytes()))
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise DataError(f"{path}: not the weights of this model: train again") from error
    return model.to(device).eval()
