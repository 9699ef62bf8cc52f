"""Sequence language models, from n-grams to recurrent networks.

``seqlm.open()`` gives the trained models of a finished run, and ``seqlm.fit_ngram()`` trains an n-gram model. Importing
this package imports nothing else. Everything that it refuses raises a subclass of ``seqlm.SeqlmError`` with a message
of one line.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlm.core.errors import SeqlmError
from seqlm.core.layout import as_path

if TYPE_CHECKING:
    from seqlm.core.settings import Device
    from seqlm.models.arpa import ArpaLanguageModel
    from seqlm.models.fitting import By, Normalise, Smoothing, Unknown
    from seqlm.models.index import Models
    from seqlm.models.ngrams import NGram

__all__ = ["SeqlmError", "__version__", "fit_ngram", "open", "open_arpa"]

__version__: str


def __getattr__(name: str) -> Any:
    """Return the version, which takes a while to find, when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("seqlm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(folder: str | Path = ".", device: "Device" = "cpu") -> "Models":
    """Return the models of a finished run, or of a folder of saved models, by name.

    ``device`` is where networks run: cpu, cuda, mps or auto. Raises ParamsError for other values, and DataError if the
    folder holds no run, or if a saved file was changed.
    """
    path = as_path(folder, "folder")
    from seqlm.core import settings
    from seqlm.models.index import open_models

    devices: Any = settings.Device
    return open_models(path, settings.check_argument(device, "device", devices, function="open"))


def open_arpa(path: str | Path) -> "ArpaLanguageModel":
    """Return the n-gram model in an ARPA file, plain or packed with gzip, for example one of KenLM or SRILM.

    Warns if its probabilities do not sum to 1. Raises DataError if it is no such file.
    """
    path = as_path(path, "path")
    from seqlm.models import arpa

    model = arpa.open_arpa(path, warnings.warn)
    model.opened_by = open_arpa, (path.resolve(),)
    return model


def fit_ngram(
    texts: str | Iterable[str],
    order: int = 3,
    by: "By" = "word",
    smoothing: "Smoothing" = "kneser_ney",
    *,
    normalise: "Normalise" = "none",
    min_freq: int = 1,
    unknown: "Unknown" = "good_turing",
    epsilon: float = 1.0,
) -> "NGram":
    """Return an n-gram model of some texts. See :func:`seqlm.models.fitting.fit_ngram`."""
    from seqlm.models import fitting

    return fitting.fit_ngram(
        texts, order, by, smoothing, normalise=normalise, min_freq=min_freq, unknown=unknown, epsilon=epsilon
    )
