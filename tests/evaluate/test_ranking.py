"""The table of models, and how sure it is."""

import math

import numpy as np
import pandas as pd

from seqlm.evaluate.ranking import collect_measures, draw_models, rank_models
from seqlm.evaluate.table_text import table_text
from seqlm.evaluate.uncertainty import draw_bits
from seqlm.score.heldout.splits import Stream
from seqlm.score.store import Score


def stream(size: int, num_chars: int | None = None) -> Stream:
    ids = np.ones(size, np.int64)
    return Stream(ids, num_chars or size, np.zeros(size), np.arange(1, size + 1))


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(0), 0
    for seed in range(100):
        # Neighbouring tokens share their difficulty, as in text.
        nats = np.repeat(rng.exponential(1.0, 200), 10)
        low, high = draw_bits(nats, stream(2001, 2000), seed).interval
        covered += low <= 1 / math.log(2) <= high
    assert 85 <= covered <= 99


def test_models_are_compared_on_the_same_draws() -> None:
    rng = np.random.default_rng(0)
    base = rng.exponential(1.0, 2000)
    draws = [draw_bits(nats, stream(2001), 0) for nats in (base, base + 0.01, rng.permutation(base))]
    # A hundredth of a nat more everywhere is sure; the same numbers in another order cannot be told apart.
    assert draws[0].compare(draws[1]) == "better"
    assert draws[1].compare(draws[0]) == "worse"
    assert draws[0].compare(draws[2]) == "not told apart"


def test_the_table_is_sorted_and_infinite_models_come_last() -> None:
    streams = {"char": {split: stream(101) for split in ("train", "val", "test")}}
    scored = [
        Score("weak", "char", dict.fromkeys(("train", "val", "test"), np.full(100, 2.0))),
        Score("never", "char", dict.fromkeys(("train", "val", "test"), np.full(100, np.inf))),
        Score("strong", "char", dict.fromkeys(("train", "val", "test"), np.full(100, 1.0))),
    ]
    measures = collect_measures(scored, streams)
    table = rank_models(scored, measures, draw_models(scored, streams, measures, 0))
    assert table["model"].tolist() == ["strong", "weak", "never"]
    assert table["against_next"][0] == "better"
    assert pd.isna(table["against_next"][1])
    assert "infinite" in table_text(table)
