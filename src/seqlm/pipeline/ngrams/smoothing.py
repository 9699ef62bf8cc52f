"""The settings of the smoothing methods: those that are not given are chosen on val."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.core.metrics import perplexity
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs
from seqlm.ngrams.models.base import Uniform
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.pipeline.ngrams.settings import NgramsParams

_MAX_TUNING_TOKENS = 250_000
_EPSILON_GRID = [10 ** (sixths / 6) for sixths in range(-18, 31)]


def choose_settings(
    counts: NgramCounts, val_ids: Ids, params: NgramsParams, *, has_unknown: bool
) -> tuple[dict[str, dict[str, Any]], list[dict[str, float]]]:
    """Return the settings of each smoothing method for the counts of train, and the rows of the
    table of the epsilons that were tried on val.

    ``has_unknown``: whether a text may have tokens that the vocabulary lacks. Then ``<unk>`` has
    the probability that Good and Turing estimate, which costs least on texts with new words.
    """
    epsilons, curve = tune_epsilons(counts, val_ids, params.laplace.max_order)
    is_given = params.laplace.epsilons != "auto"
    chosen = {
        "epsilons": list(params.laplace.epsilons if is_given else epsilons),
        "chosen_on_val": not is_given,
    }
    return {
        Uniform.smoothing: {},
        Laplace.smoothing: chosen,
        KneserNey.smoothing: {"unknown": "good_turing" if has_unknown else "uniform"},
    }, curve


def tune_epsilons(
    counts: NgramCounts, val_ids: Ids, order: int
) -> tuple[tuple[float, ...], list[dict[str, float]]]:
    """Choose the epsilon of each order on val, or on its first quarter of a million tokens, from
    the lowest order up.

    Returns the epsilons and the curve: rows with order, epsilon and val_perplexity.
    """
    ids = val_ids[:_MAX_TUNING_TOKENS]
    lower = unigram = np.full(max(len(ids) - 1, 0), 1 / counts.vocab_size)
    positions = [
        (1, np.zeros(len(lower), np.int64), np.asarray(ids[1:], np.int64)),
        *counts.lookups(ids, order),
    ]
    chosen: tuple[float, ...] = ()
    curve: list[dict[str, float]] = []
    for n, contexts, rows in positions:
        if chosen:
            lower = Laplace(counts, n - 1, chosen).probs(ids)
        unigram = lower if n == 2 else unigram
        table = counts.table(n)
        seen = np.where(rows >= 0, table.counts[rows], 0)
        totals = np.where(contexts >= 0, table.context_totals[contexts], 0)
        perplexities = _perplexities(seen, totals, lower, unigram)
        tried = zip(_EPSILON_GRID, perplexities, strict=True)
        curve += [
            {"order": n, "epsilon": epsilon, "val_perplexity": perplexity}
            for epsilon, perplexity in tried
        ]
        chosen += (_EPSILON_GRID[int(np.argmin(perplexities))],)
    return chosen, curve


def _perplexities(
    seen: NDArray[Any], totals: NDArray[np.int64], lower: Probs, back: Probs
) -> list[float]:
    """Return the perplexity with each epsilon of the grid.

    ``lower`` has p of all tokens under the order below, which stays for the first ones: their
    context is too short.
    """
    start = len(lower) - len(seen)
    first_nll, back = -log(lower[:start]).sum(), back[start:]
    nll = [
        first_nll - log((seen + epsilon * back) / (totals + epsilon)).sum()
        for epsilon in _EPSILON_GRID
    ]
    return [perplexity(float(total) / len(lower), 1) for total in nll]
