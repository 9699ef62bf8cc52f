"""Sequence language models, from n-grams to recurrent networks.

``seqlm.open()`` gives the trained models of a finished run; ``seqlm.fit_ngram()`` and
``seqlm.fit_network()`` train a model of a text. Importing this package imports nothing else.
Everything that it refuses raises a subclass of ``seqlm.SeqlmError`` with a one-line message.

In this package, numbers such as (8.5.3) are equations, and numbers such as 8.5 or 8.1-1 are
sections or exercises, of chapter 8 of *Dive into Deep Learning*, edition 0.16.
"""

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seqlm.core.errors import DataError, MachineError, ParamsError, SeqlmError
from seqlm.core.layout import as_path

if TYPE_CHECKING:
    from seqlm.core.settings import Device
    from seqlm.models.arpa import ArpaLanguageModel
    from seqlm.models.fitting import fit_network as fit_network
    from seqlm.models.fitting import fit_ngram as fit_ngram
    from seqlm.models.index import ModelNotFoundError as ModelNotFoundError
    from seqlm.models.index import Models

__all__ = [
    "DataError",
    "MachineError",
    "ModelNotFoundError",
    "ParamsError",
    "SeqlmError",
    "__version__",
    "fit_network",
    "fit_ngram",
    "open",
    "open_arpa",
]

__version__: str


def __getattr__(name: str) -> Any:
    """Return what takes a while to import when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("seqlm")
    if name in ("fit_network", "fit_ngram"):
        from seqlm.models import fitting

        return getattr(fitting, name)
    if name == "ModelNotFoundError":
        from seqlm.models.index import ModelNotFoundError

        return ModelNotFoundError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(folder: str | Path = ".", device: "Device" = "cpu") -> "Models":
    """Return the models of a finished run, or of a folder of saved models, by name.

    ``device`` is where networks run: cpu, cuda, mps or auto. Raises ParamsError for other values,
    and DataError if the folder holds no run, or if a saved file was changed.
    """
    path = as_path(folder, "folder")
    from seqlm.core import settings
    from seqlm.models.index import open_models

    devices: Any = settings.Device
    return open_models(path, settings.check_argument(device, "device", devices, function="open"))


def open_arpa(
    path: str | Path, by: "Literal['char', 'word'] | None" = None, *, eos: bool = True
) -> "ArpaLanguageModel":
    """Return the n-gram model in an ARPA file, plain or packed with gzip, bzip2 or xz, for example
    one of KenLM or SRILM.

    A file does not say what its tokens are. ``by`` does: words, or characters. By default they are
    words, but characters if all of them are single characters and the model does not predict the
    end of a sentence.

    A model that predicts the end of a sentence, ``</s>``, reads each line as a sentence. Totals of
    ``score`` then include the end of each, unless ``eos`` is False, as in KenLM. It is a row of
    ``surprisals`` by token, and belongs to no word.

    Warns if the probabilities of the 1-grams do not sum to 1, if the file does not list ``<unk>``,
    and if the tokens could be words or characters. Raises DataError if it is not such a file, and
    ParamsError for other values of ``by``.
    """
    path = as_path(path, "path")
    from seqlm.core import settings
    from seqlm.models import arpa

    by = settings.check_argument(by, "by", arpa.By | None, function="open_arpa")
    model = arpa.ArpaLanguageModel(path, by, eos=eos)
    for warning in model.warnings:
        warnings.warn(warning, stacklevel=2)
    model.opener = partial(open_arpa, eos=eos), (path.resolve(), by)
    return model
