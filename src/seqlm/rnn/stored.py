"""What is stored with a network, and which engine computes it."""

from pathlib import Path
from typing import TYPE_CHECKING

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_checksummed, sha256_of_file
from seqlm.core.settings import check
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.settings import KINDS, NetworkSettings

if TYPE_CHECKING:
    import torch

FORMAT = 3
_ADVICE = "train again"


def runs_compiled(settings: NetworkSettings, device: "str | torch.device") -> bool:
    """Whether a network runs as compiled loops: with ``engine: auto``, on a CPU with FMA, if its kind has them."""
    has_loops = KINDS[settings.model].parameters is not None
    return has_loops and settings.engine == "auto" and str(device) == "cpu" and has_fma()


def read_description(folder: Path, run: str) -> tuple[NetworkSettings, int]:
    """Return the settings and the vocabulary size of a stored network, whose weights are those that were stored.

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
    return settings, description["vocab_size"]


def not_its_weights(path: Path) -> DataError:
    """Return the error for weights that do not belong to the settings beside them."""
    return DataError(f"{path}: not the weights of this model: {_ADVICE}")
