"""Values that are not finite have a reason and end nothing."""

import json

import numpy as np
import pytest

from seqlm.core.files import write_json
from seqlm.evaluate.ranking import collect_measures, draw_models, rank_models
from seqlm.score.heldout.splits import SPLITS, Stream
from seqlm.score.store import Score, headline, measure


def stream(size: int) -> Stream:
    return Stream(np.ones(size, np.int64), size - 1, np.zeros(size), np.arange(1, size + 1))


def test_a_perplexity_beyond_the_largest_number_is_null_with_its_reason(tmp_path) -> None:
    # exp(800) is 10 to the power 347; 800 nats are 800 / ln 2 = 1154.2 bits.
    found = measure(np.full(10, 800.0), stream(11))
    assert found["perplexity"] is None
    assert found["nats_per_token"] == 800
    assert found["bits_per_character"] == pytest.approx(1154.156)
    assert found["reason"] == "infinite: 800 nats a token give a perplexity beyond the largest number"
    write_json(tmp_path / "x.json", {"measures": found, "headline": headline({"val": found, "test": found})})
    assert json.loads((tmp_path / "x.json").read_text())["headline"]["test_perplexity"] is None


def test_what_is_not_a_number_is_not_called_a_probability_of_0() -> None:
    found = measure(np.array([1.0, np.nan]), stream(3))
    assert found["bits_per_character"] is None
    assert found["reason"] == "not a number: 1 tokens have no probability"


def test_the_ranking_puts_it_behind_what_is_finite_and_before_what_has_probability_0() -> None:
    values = {"never": np.inf, "exploded": 800.0, "uniform": 3.3}
    scored = [Score(name, "char", dict.fromkeys(SPLITS, np.full(100, value))) for name, value in values.items()]
    streams = {"char": {split: stream(101) for split in SPLITS}}
    measures = collect_measures(scored, streams)
    table = rank_models(scored, measures, draw_models(scored, streams, measures, 0))
    assert table["model"].tolist() == ["uniform", "exploded", "never"]
    assert table["test_perplexity"].isna().tolist() == [False, True, True]
