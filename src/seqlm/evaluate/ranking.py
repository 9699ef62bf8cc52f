"""The main table: every model, the best on test first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from seqlm.evaluate.columns import COLUMNS, Result
from seqlm.evaluate.mixtures import Texts
from seqlm.evaluate.uncertainty import bootstrap_bits
from seqlm.score.metrics import finite_bits
from seqlm.score.store import Score


def rank_models(scores: Sequence[Score], texts: Mapping[str, Texts], seed: int) -> list[Result]:
    """Return all models, the best on test first, infinite ones last, each compared with the next.

    ``texts``: kind of token -> its scored texts.
    """
    results = []
    for score in scores:
        is_finite = score.metrics["test"]["bits_per_character"] is not None
        text = texts[score.info.token]["test"]
        results.append(Result(score, bootstrap_bits(score.nats["test"], text, seed) if is_finite else None))
    results.sort(key=lambda result: (finite_bits(result.score.metrics["test"]), result.score.name))
    compared = [replace(result, against_next=result.compare(following)) for result, following in pairwise(results)]
    return [*compared, *results[-1:]]


def main_table(results: Sequence[Result]) -> pd.DataFrame:
    """Return one row for each result, with the columns of :data:`~seqlm.evaluate.columns.COLUMNS`."""
    dtypes = {float: np.float64, int: "Int64", bool: bool, str: object}
    columns = {
        column.name: pd.Series([column.value(result) for result in results], dtype=dtypes[column.dtype])
        for column in COLUMNS
    }
    return pd.DataFrame(columns)


def leaders(results: Sequence[Result]) -> dict[str, dict[str, Any] | None]:
    """Return the best model on test of each of three groups; None for a group without one.

    ``static`` models are compared with the next of them, ``dynamic`` ones with the best static model; ``ngram`` is the
    best static n-gram model.
    """

    def lead(group: Sequence[Result], others: Sequence[Result]) -> dict[str, Any] | None:
        if not group:
            return None
        best, other = group[0], others[0] if others else None
        return {
            "model": best.score.name,
            "bits": best.bits("test"),
            "perplexity": best.score.metrics["test"]["perplexity"],
            "against": other.score.name if other is not None else None,
            "verdict": best.compare(other) if other is not None else None,
        }

    finite = [result for result in results if result.bootstrap is not None]
    static = [result for result in finite if not result.score.info.dynamic]
    dynamic = [result for result in finite if result.score.info.dynamic]
    ngram = [result for result in static if result.score.info.family == "ngram"]
    return {"static": lead(static, static[1:]), "dynamic": lead(dynamic, static), "ngram": lead(ngram, [])}
