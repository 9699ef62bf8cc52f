"""The figures that sum up a model's surprisals."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_scores import scored_text
from seqlm.core.errors import DataError
from seqlm.core.files import write_json
from seqlm.heldout.scored_text import stream_of
from seqlm.score.store import headline, summarise


def test_metrics_by_hand() -> None:
    text = stream_of(np.array([1, 0, 1]), np.array([0, math.log(4), 0]), np.array([1, 2, 3]), 4)
    metrics = summarise(np.log([2.0, 8.0]), text)
    assert metrics["perplexity"] == pytest.approx(4)
    assert metrics["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8), and 2 bits for the unknown token: 6 bits for 4 characters.
    assert metrics["bits_per_character"] == pytest.approx(1.5)
    # log2(2) for predicting the unknown token, and 2 bits for its spelling.
    assert metrics["unknown_bits"] == pytest.approx(3 / 4)
    assert metrics["separator_bits"] == 0
    assert summarise(np.ones(2), replace(text, separator_nats=math.log(2)))["separator_bits"] == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    ("nats", "finite", "reason"),
    [
        ([1.0, np.inf], {"tokens"}, "infinite: 1 tokens have probability 0"),
        ([1.0, np.nan], {"tokens"}, "not a number: 1 tokens have no probability"),
        # exp(800) is too large for a number; 800 nats are 1154 bits.
        (
            [800.0, 800.0],
            {"tokens", "nats_per_token", "bits_per_character"},
            "infinite: 800 nats per token give a perplexity beyond the largest number",
        ),
    ],
)
def test_a_value_that_is_not_finite_is_null_with_a_reason(
    nats: list[float], finite: set[str], reason: str, tmp_path: Path
) -> None:
    metrics = summarise(np.array(nats), scored_text(2))
    keys = {"tokens", "nats_per_token", "perplexity", "bits_per_character"}
    assert {key for key in keys if metrics[key] is not None} == finite
    assert metrics["reason"] == reason
    write_json(tmp_path / "x.json", {"metrics": metrics, "headline": headline({"val": metrics, "test": metrics})})
    assert json.loads((tmp_path / "x.json").read_text())["headline"]["test_perplexity"] is None


def test_surprisals_of_another_text_are_refused() -> None:
    with pytest.raises(DataError, match="9 surprisals for a text of 10 scored tokens: score again"):
        summarise(np.ones(9), scored_text(10))
