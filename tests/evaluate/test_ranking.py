"""The main table, the leaders, and what they say of dynamic and infinite models."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.evaluate.columns import main_table
from seqlm.evaluate.ranking import Comparison, Result, rank_models
from seqlm.evaluate.tables import headlines
from seqlm.heldout.scored_text import Folds
from seqlm.score.store import TRAIN_SUBSET, ModelInfo, Score
from seqlm.vocab.corpus import SPLITS

TEXTS = {"char": dict.fromkeys(SPLITS, scored_text(1000))}
NOISE = np.random.default_rng(0).exponential(1.0, 1000)
LSTM, COUNTS = network("lstm"), ngram("counts", smoothing="laplace", order=1, chosen_on_val=True)
MIXTURE = ModelInfo(
    "all", "mixture", "char", 1000, dynamic=True, chosen_on_val=True, members=("lstm+dynamic", "counts")
)
MODELS = [
    score(LSTM, NOISE + 0.2),
    score(LSTM.as_dynamic(), NOISE + 0.1),
    score(MIXTURE, NOISE + 0.05),
    # The same surprisals in another order.
    score(COUNTS, np.random.default_rng(0).permutation(NOISE) + 0.21),
    score(ngram("uniform", smoothing="uniform", order=0), NOISE + 1.0),
]


def rank(*scores: Score, folds: Folds | None = None) -> list[Result]:
    return rank_models(scores, TEXTS, folds)[0]


def leaders(*scores: Score) -> dict[str, Any]:
    return rank_models(scores, TEXTS, None)[1]


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
    assert table["next_verdict"].tolist() == ["better", "better", None, None]
    assert table["best_verdict"].tolist() == [None, "worse", "worse", None]


def test_models_are_compared_with_the_best_on_val_even_if_another_one_is_best_on_test() -> None:
    lucky = score(network("lucky"), NOISE + 0.2, test=NOISE + 0.1)
    chosen = score(network("chosen"), NOISE + 0.15)
    weak = score(network("weak"), NOISE + 0.3)
    table = main_table(rank(weak, chosen, lucky)).set_index("model")
    assert table.index.tolist() == ["lucky", "chosen", "weak"]
    # Differences of 0.05 and 0.15 nats.
    to_best = [-0.05 / np.log(2), np.nan, 0.15 / np.log(2)]
    assert table["best_difference"].tolist() == pytest.approx(to_best, nan_ok=True)
    assert table["best_verdict"].tolist() == ["better", None, "worse"]
    to_next = [-0.05 / np.log(2), -0.15 / np.log(2), np.nan]
    assert table["next_difference"].tolist() == pytest.approx(to_next, nan_ok=True)


@pytest.mark.parametrize(("difference", "verdict"), [(0.0001, "equal"), (0.001, "better")])
def test_a_model_is_not_better_than_one_with_the_same_printed_number(difference: float, verdict: str) -> None:
    # 1.0986 nats are 1.585 bits. Surprisals that are higher at every token are told apart, however close they are.
    models = [score(network(name), np.full(1000, 1.0986 + more)) for name, more in (("a", 0), ("b", difference))]
    assert main_table(rank(*models))["next_verdict"].tolist() == [verdict, None]
    static = leaders(*models)["static"]
    assert (static["against"], static["verdict"]) == ("b", verdict)


def test_intervals_are_those_that_the_folds_calibrate() -> None:
    # Blocks of the reference model have deviation 1, and its folds deviation 2 x sqrt(1 + 1/4) = sqrt(5).
    signs = np.resize([-1.0, 1.0], 50) * np.sqrt(49 / 50)
    folds = Folds([[-2.0, 2.0, 2.0, -2.0], [0.0] * 4], [signs.tolist(), [0.0] * 50])
    made = score(LSTM, np.repeat(2 + signs / 10, 20) * np.log(2))
    (result,) = rank(made, folds=folds)
    # The model's blocks have deviation 0.1, so its standard error is a tenth; t(3) is 3.182.
    error = 0.1 * np.std(folds.bits[0], ddof=1) * np.sqrt(5 / 4)
    assert result.interval == pytest.approx((2 - 3.182 * error, 2 + 3.182 * error), abs=1e-3)


def test_a_short_test_has_no_intervals_and_no_verdicts() -> None:
    made = [score(network(name), np.full(30, bits)) for name, bits in (("a", 1.0), ("b", 2.0))]
    results, found = rank_models(made, {"char": dict.fromkeys(SPLITS, scored_text(30))}, None)
    assert [(result.interval, result.to_best, result.to_next) for result in results] == [
        ((None, None), Comparison(), Comparison())
    ] * 2
    assert (found["static"] or {})["verdict"] is None


def test_a_row_has_the_properties_of_its_model() -> None:
    table = main_table(rank(*MODELS)).set_index("model")
    assert table["family"].tolist() == ["mixture", "network", "network", "ngram", "ngram"]
    assert table["dynamic"].to_dict() == {score.name: score.info.dynamic for score in MODELS}
    assert table.index[table["chosen_on_val"]].tolist() == ["all", "lstm+dynamic", "counts"]
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


def test_leaders_are_compared() -> None:
    found = leaders(*MODELS)
    static, dynamic, ngram_leader = (found[group] for group in ("static", "dynamic", "ngram"))
    # The blocks of lstm and counts differ by more than their means.
    assert (static["model"], static["against"], static["verdict"]) == ("lstm", "counts", "not told apart")
    assert (dynamic["model"], dynamic["against"], dynamic["verdict"]) == ("all", "lstm", "better")
    # The surprisals of all and lstm differ by the same amount everywhere.
    assert (dynamic["difference"], dynamic["margin"]) == pytest.approx((-0.15 / np.log(2), 0))
    assert dynamic["perplexity"] == pytest.approx(np.exp(NOISE.mean() + 0.05))
    assert (ngram_leader["model"], ngram_leader["against"]) == ("counts", "lstm")
    assert static["bits"] == pytest.approx((NOISE.mean() + 0.2) / np.log(2))
    assert static["low"] < static["bits"] < static["high"]
    assert [leader["best_on_test"] for leader in found.values()] == [None, None, None]


def test_leaders_are_chosen_on_val_and_say_what_test_would_choose() -> None:
    models = [
        score(network("chosen"), NOISE + 0.3, val=NOISE),
        score(network("second"), NOISE + 0.5, val=NOISE + 0.1),
        score(network("lucky"), NOISE, val=NOISE + 0.2),
        score(ngram("strong"), NOISE + 0.8, val=NOISE + 0.6),
        score(ngram("weak"), NOISE + 0.7, val=NOISE + 0.9),
        score(network("x").as_dynamic(), NOISE - 0.1, val=NOISE),
        score(network("y").as_dynamic(), NOISE - 0.2, val=NOISE + 0.1),
    ]
    found = leaders(*models)
    assert {group: leader["model"] for group, leader in found.items()} == {
        "static": "chosen", "dynamic": "x+dynamic", "ngram": "strong",
    }  # fmt: skip
    assert {group: leader["best_on_test"] for group, leader in found.items()} == {
        "static": "lucky", "dynamic": "y+dynamic", "ngram": "weak",
    }  # fmt: skip
    assert {leader["against"] for leader in found.values()} == {"second", "chosen"}
    assert found["static"]["bits"] - found["static"]["best_on_test_bits"] == pytest.approx(0.3 / np.log(2))


def test_a_model_that_need_not_predict_separators_leads_nothing() -> None:
    words = score(ngram("words"), NOISE - 0.2)
    metrics = {split: values | {"separator_bits": 0.1} for split, values in words.metrics.items()}
    words = Score(words.info, words.nats, metrics)
    others = [score(LSTM, NOISE), score(ngram("counts"), NOISE + 0.1)]
    results, found = rank_models([words, *others], TEXTS, None)
    assert results[0].score.name == "words"
    assert [found[group]["model"] for group in ("static", "ngram")] == [LSTM.name, "counts"]  # type: ignore[index]
    assert headlines([words, *others])["ngram"]["test_bits"] == others[1].metrics["test"]["bits_per_character"]
    assert leaders(words)["static"]["model"] == "words"


def test_a_group_without_a_model_has_no_leader_and_an_infinite_leader_no_verdict() -> None:
    found = leaders(score(LSTM, NOISE), score(ngram("never"), NOISE, test=np.full(1000, np.inf)))
    assert found["dynamic"] is None
    assert (found["static"]["model"], found["static"]["against"], found["static"]["verdict"]) == ("lstm", None, None)
    assert (found["ngram"]["model"], found["ngram"]["bits"], found["ngram"]["low"]) == ("never", None, None)
