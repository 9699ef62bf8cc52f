"""Sequence language models, from n-grams to recurrent networks.

``seqlm.open()`` gives the trained models of a finished run, and ``seqlm.fit_ngram()`` trains an n-gram model; importing
this package imports nothing else.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqlm.core.settings import Device
    from seqlm.models.arpa import ArpaLanguageModel
    from seqlm.models.fitting import By, Normalise, Smoothing, Unknown
    from seqlm.models.fixed_ngrams import FixedNGram
    from seqlm.models.loading import Models


def open(folder: str | Path = ".", device: "Device" = "cpu") -> "Models":
    """Return the models of a finished run, or of a folder that was exported from one, by name.

    ``device`` is where networks run. Raises DataError if the folder holds no run, or if an exported file was changed.
    """
    from seqlm.models.loading import open_models

    return open_models(Path(folder), device)


def open_arpa(path: str | Path) -> "ArpaLanguageModel":
    """Return the n-gram model in an ARPA file, plain or packed with gzip, for example one of KenLM or SRILM.

    Warns if its probabilities do not sum to 1.
    """
    from seqlm.models import arpa

    return arpa.open_arpa(Path(path), warnings.warn)


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
) -> "FixedNGram":
    """Return an n-gram model of some texts. See :func:`seqlm.models.fitting.fit_ngram`."""
    from seqlm.models import fitting

    return fitting.fit_ngram(
        texts, order, by, smoothing, normalise=normalise, min_freq=min_freq, unknown=unknown, epsilon=epsilon
    )
