"""The list of smoothing methods.

To add one, write a subclass of :class:`~seqlm.ngrams.models.base.InterpolatedModel`, or of ``NGramModel``, in a module
of its own, and append it to the list. If it has settings, they belong in :class:`~seqlm.ngrams.settings.NgramsParams`
and ``params.yaml``.
"""

from collections.abc import Mapping
from typing import Any

from seqlm.core.errors import DataError
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts
from seqlm.ngrams.models.base import Fit, NGramModel, Uniform
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.settings import NgramsParams

SMOOTHINGS: tuple[type[NGramModel], ...] = (Uniform, Laplace, KneserNey)
"""In the order of the tables."""


def fit_smoothings(counts: NgramCounts, val_ids: Ids, params: NgramsParams) -> dict[str, Fit]:
    """Return how each smoothing method is set for a text: the counts come from train, choices from val."""
    return {method.smoothing: method.fit(counts, val_ids, params) for method in SMOOTHINGS}


def build_models(counts: NgramCounts, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, NGramModel]:
    """Return the models of all smoothing methods by name, given the settings of each method by its name.

    Raises DataError if a method is younger than the settings.
    """
    if missing := {method.smoothing for method in SMOOTHINGS} - settings.keys():
        raise DataError(f"the stored n-gram models have no settings of {min(missing)}: count again")
    models = [model for method in SMOOTHINGS for model in method.build(counts, settings[method.smoothing])]
    return {model.name: model for model in models}


def highest_orders(models: Mapping[str, NGramModel]) -> list[NGramModel]:
    """Return the model of the highest order of each smoothing method. The uniform model, of order 0, is left out."""
    return list({model.smoothing: model for model in models.values() if model.order > 0}.values())
