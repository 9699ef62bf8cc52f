"""The choice of settings on val."""

import numpy as np
import pytest

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.laplace import Laplace
from seqlm.pipeline.ngrams.settings import NgramsParams
from seqlm.pipeline.ngrams.smoothing import choose_settings, tune_epsilons
from small_runs import PARAMS

TEXT = np.array([1, 2, 1, 2, 1, 3])


def test_epsilons_that_are_given_are_not_chosen_on_val() -> None:
    counts = count_ngrams(TEXT, 4, 2)
    best, _ = tune_epsilons(counts, TEXT, 2)
    for epsilons, expected in (("auto", best), ([0.5, 2.0], (0.5, 2.0))):
        settings = PARAMS["ngrams"] | {"laplace": {"epsilons": epsilons, "max_order": 2}}
        chosen, _ = choose_settings(counts, TEXT, NgramsParams.model_validate(settings))
        models = Laplace.build(counts, chosen["laplace"])
        assert [(model.order, model.chosen_on_val) for model in models] == [(n, epsilons == "auto") for n in (1, 2)]
        assert models[-1].epsilons == expected


def test_epsilons_are_chosen_where_val_is_best() -> None:
    rng = np.random.default_rng(1)
    train, val = rng.integers(1, 5, 300), rng.integers(1, 5, 100_000)
    counts = count_ngrams(train, 5, 3)
    epsilons, curve = tune_epsilons(counts, val, 3)
    for order in (1, 2, 3):
        of_order = [(row["val_perplexity"], row["epsilon"]) for row in curve if row["order"] == order]
        assert min(of_order)[1] == epsilons[order - 1]
        # The curve shows what the model itself comes to.
        nll = token_nll(Laplace(counts, order, epsilons[:order]), val)
        assert min(of_order)[0] == pytest.approx(np.exp(nll.mean()))
    # The text has no order: bigrams say nothing, and the best model all but ignores them.
    assert epsilons[1] > 100
