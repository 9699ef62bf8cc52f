"""The main table, the leaders, and what they say of dynamic and infinite models."""

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.evaluate.columns import Result
from seqlm.evaluate.ranking import leaders, main_table, rank_models
from seqlm.score.model_info import ModelInfo
from seqlm.score.store import TRAIN_SUBSET, Score
from seqlm.vocab.corpus import SPLITS

TEXTS = {"char": dict.fromkeys(SPLITS, scored_text(1000))}
NOISE = np.random.default_rng(0).exponential(1.0, 1000)
LSTM, COUNTS = network("lstm"), ngram("counts", smoothing="laplace", order=1)
MIXTURE = ModelInfo("all", "mixture", "char", 1000, dynamic=True, members=("lstm+dynamic", "counts"))
MODELS = [
    score(LSTM, NOISE + 0.2),
    score(LSTM.as_dynamic(), NOISE + 0.1),
    score(MIXTURE, NOISE + 0.05),
    # The same surprisals in another order.
    score(COUNTS, np.random.default_rng(0).permutation(NOISE) + 0.2),
    score(ngram("uniform", smoothing="uniform", order=0), NOISE + 1.0),
]


def rank(*scores: Score) -> list[Result]:
    return rank_models(scores, TEXTS, seed=0)


def test_the_best_model_on_test_comes_first_and_infinite_ones_last() -> None:
    table = main_table(
        rank(
            score(network("weak"), np.full(1000, 2.0)),
            score(network("never"), np.full(1000, np.inf)),
            score(network("exploded"), np.full(1000, 800.0)),  # exp(800) is no number, but the bits are
            score(network("strong"), np.full(1000, 1.0)),
        )
    )
    assert table["model"].tolist() == ["strong", "weak", "exploded", "never"]
    assert table["test_bits"].isna().tolist() == [False, False, False, True]
    assert table["test_perplexity"].isna().tolist() == [False, False, True, True]
    assert table["against_next"].tolist() == ["better", "better", None, None]


@pytest.mark.parametrize(("difference", "verdict"), [(0.0001, "equal"), (0.001, "better")])
def test_a_model_is_not_better_than_one_with_the_same_printed_number(difference: float, verdict: str) -> None:
    # 1.0986 nats are 1.585 bits. Surprisals that are higher at every token are told apart, however close they are.
    results = rank(score(network("a"), np.full(1000, 1.0986)), score(network("b"), np.full(1000, 1.0986 + difference)))
    assert results[0].against_next == verdict
    static = leaders(results)["static"]
    assert static is not None
    assert (static["against"], static["verdict"]) == ("b", verdict)


def test_a_row_has_the_properties_of_its_model() -> None:
    table = main_table(rank(*MODELS)).set_index("model")
    assert table["family"].tolist() == ["mixture", "network", *table["family"].tolist()[2:4], "ngram"]
    assert table["dynamic"].to_dict() == {score.name: score.info.dynamic for score in MODELS}
    assert table.loc["counts", ["token", "counted_token", "smoothing", "order"]].tolist() == [
        "char", "char", "laplace", 1,
    ]  # fmt: skip
    assert table.loc["lstm", "network"] == "lstm"
    assert table.loc["all", "members"] == "lstm+dynamic counts"
    assert pd.isna(table.loc["lstm", "order"])
    assert pd.isna(table.loc["all", "train_bits"])  # dynamic models are scored on val and test only
    assert table.loc["uniform", "train_subset_bits"] == table.loc["uniform", "train_bits"]


def test_a_model_of_a_part_of_train_shows_its_bits_on_that_part() -> None:
    made = score(LSTM, NOISE)
    metrics = {TRAIN_SUBSET: {"bits_per_character": 0.5}, **made.metrics}
    (row,) = main_table(rank(Score(made.info, made.nats, metrics))).to_dict("records")
    assert row["train_subset_bits"] == 0.5
    assert row["train_bits"] == row["test_bits"]


def test_the_best_static_model_is_compared_with_the_next_one() -> None:
    found = leaders(rank(*MODELS))
    static = found["static"]
    assert static is not None
    # The sums of both are equal: this text does not tell them apart.
    assert {static["model"], static["against"]} == {"lstm", "counts"}
    assert static["verdict"] == "not told apart"
    assert found["ngram"] is not None
    assert found["ngram"]["model"] == "counts"


def test_the_best_dynamic_model_is_compared_with_the_best_static_one() -> None:
    found = leaders(rank(*MODELS))
    static, dynamic = found["static"], found["dynamic"]
    assert static is not None
    assert dynamic is not None
    assert (dynamic["model"], dynamic["against"], dynamic["verdict"]) == ("all", static["model"], "better")
    assert static["bits"] - dynamic["bits"] == pytest.approx(0.15 / np.log(2))


def test_a_group_without_a_model_has_no_leader() -> None:
    found = leaders(rank(score(LSTM, NOISE), score(ngram("never"), np.full(1000, np.inf))))
    assert found["dynamic"] is None
    assert found["ngram"] is None
    assert found["static"] is not None
    assert (found["static"]["against"], found["static"]["verdict"]) == (None, None)
