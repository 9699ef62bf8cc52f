"""The main table: the order of its rows, its comparisons, its columns, and its text."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.files import read_csv, write_csv
from seqlm.models.info import ModelInfo
from seqlm.pipeline.evaluate.columns import COLUMNS, describe_share, main_table, table_text
from seqlm.pipeline.evaluate.ranking import Result, rank_models
from seqlm.pipeline.evaluate.uncertainty import Comparison, critical_value, scales_of_text
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import TRAIN_SUBSET, Scores
from seqlm.vocab.corpus import SPLITS

NOISE, ONES = np.random.default_rng(0).exponential(1.0, 1000), np.ones(1000)
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
STEADY = score(LSTM, np.linspace(1, 2, 100))


def rank(*scores: Scores, folds: Folds | None = None) -> list[Result]:
    texts = dict.fromkeys(SPLITS, scored_text(len(scores[0].nll["test"])))
    return rank_models(scores, {"char": texts}, folds)


def table(*scores: Scores) -> pd.DataFrame:
    return main_table(rank(*scores))


def test_models_are_sorted_by_test_and_infinite_ones_come_last() -> None:
    # exp(800) is no number, but the bits are.
    nll = {"weak": 2.0, "never": np.inf, "exploded": 800.0, "strong": 1.0}
    made = table(*(score(network(name), ONES * value) for name, value in nll.items()))
    assert made["model"].tolist() == ["strong", "weak", "exploded", "never"]
    assert made["test_bits"].isna().tolist() == [False, False, False, True]
    assert made["test_perplexity"].isna().tolist() == [False, False, True, True]
    assert made["best_verdict"].tolist() == [None, "worse", "worse", None]


def test_the_best_model_on_val_comes_first_and_is_compared_even_if_another_one_is_best_on_test() -> None:
    lucky = score(network("lucky"), NOISE + 0.2, test=NOISE + 0.1)
    made = table(score(network("weak"), NOISE + 0.3), score(network("chosen"), NOISE + 0.15), lucky)
    assert made["model"].tolist() == ["chosen", "lucky", "weak"]
    # Differences of 0.05 and 0.15 nats.
    vs_best = [np.nan, -0.05 / np.log(2), 0.15 / np.log(2)]
    assert made["best_difference"].tolist() == pytest.approx(vs_best, nan_ok=True)
    assert made["best_verdict"].tolist() == [None, "better", "worse"]


def test_models_that_keep_learning_are_no_best_model_and_a_group_of_their_own() -> None:
    made = table(*MODELS)
    assert made["model"].tolist() == ["lstm", "counts", "uniform", "all", "lstm+dynamic"]
    # The surprisals of all and lstm differ by the same amount everywhere, those of counts only on average.
    assert made["best_verdict"].tolist() == [None, "not significant", "worse", "better", "better"]
    assert made["best_difference"].iloc[3] == pytest.approx(-0.15 / np.log(2))


def test_intervals_are_those_that_the_folds_calibrate() -> None:
    # Blocks of the reference model have deviation 1, and its folds 4 / sqrt(3).
    signs = np.resize([-1.0, 1.0], 50) * np.sqrt(49 / 50)
    folds = Folds(bits=[[-2.0, 2.0, 2.0, -2.0], [-1.0, 1.0, 1.0, -1.0]], test_blocks=[signs.tolist(), [0.0] * 50])
    (result,) = rank(score(LSTM, np.repeat(2 + signs / 10, 20) * np.log(2)), folds=folds)
    # The model's blocks have deviation 0.1, so its standard error is a tenth; that of two passages is sqrt(2) as large.
    margin = critical_value(1, 25, 3) * np.sqrt(2) * 0.1 * 4 / np.sqrt(3)
    assert result.interval == pytest.approx((2 - margin, 2 + margin))


def test_margins_are_those_of_all_comparisons_together() -> None:
    # Four models are three comparisons with the best.
    best, *others = rank(*(score(network(name), NOISE + NOISE[::-1] * n) for n, name in enumerate("abcd")))
    assert best.vs_best == Comparison()
    scale = scales_of_text(scored_text(1000), None)
    assert scale is not None
    for number, other in enumerate(others, start=1):
        difference = scored_text(1000).block_bits(NOISE[::-1] * number, 50)
        assert other.vs_best.margin == pytest.approx(scale.differences.compare(difference, 3).margin)


def test_a_short_test_has_no_intervals_and_no_verdicts() -> None:
    results = rank(*(score(network(name), np.full(30, bits)) for name, bits in (("a", 1.0), ("b", 2.0))))
    assert [(result.interval, result.vs_best) for result in results] == [((None, None), Comparison())] * 2


def test_a_row_has_the_properties_of_its_model() -> None:
    rows = table(*MODELS).set_index("model")
    assert rows["family"].tolist() == ["network", "ngram", "ngram", "mixture", "network"]
    assert rows["dynamic"].to_dict() == {score.name: score.info.dynamic for score in MODELS}
    assert rows.index[rows["chosen_on_val"]].tolist() == ["counts", "all", "lstm+dynamic"]
    properties = rows.loc["counts", ["token", "counted_token", "smoothing", "order"]].tolist()
    assert properties == ["char", "char", "laplace", 1]
    assert rows.loc["lstm", "network"] == "lstm"
    assert rows.loc["all", "members"] == "lstm+dynamic counts"
    assert pd.isna(rows.loc["lstm", "order"])
    assert pd.isna(rows.loc["all", "train_bits"])  # dynamic models are scored on val and test only
    assert rows.loc["uniform", "seen_bits"] == rows.loc["uniform", "train_bits"]
    # A model of a part of train shows its bits on that part.
    metrics = {**MODELS[0].metrics, TRAIN_SUBSET: {"bits_per_character": 0.5}}
    (row,) = table(Scores(LSTM, MODELS[0].nll, metrics)).to_dict("records")
    assert (row["seen_bits"], row["train_bits"]) == (0.5, row["test_bits"])


def test_a_model_with_infinite_bits_is_not_compared() -> None:
    results = rank(score(LSTM, NOISE), score(ngram("never"), NOISE, test=ONES * np.inf))
    assert [(result.interval == (None, None), result.vs_best) for result in results] == [
        (False, Comparison()), (True, Comparison())
    ]  # fmt: skip


def test_the_perplexity_of_a_run_that_exploded_is_short() -> None:
    column = next(column for column in COLUMNS if column.name == "test_perplexity")
    assert [column.cell({column.name: value}) for value in (4.481, 9.1e90, None)] == ["4.48", "9.1e+90", "infinite"]


def test_the_table_by_hand(tmp_path: Path) -> None:
    # 1.5 nats on average are 2.164 bits and a perplexity of 4.48, 1.0 nats are 1.443 bits and 2.72. Five blocks of 20
    # tokens differ by 0.202 nats each, so their deviation is 0.202 sqrt(2.5) / ln 2 = 0.461 bits; with 5 // 2 degrees
    # of freedom, half of the interval is 4.303 x sqrt(2) x 0.461 / sqrt(5) = 1.254.
    dynamic = score(LSTM.as_dynamic(), np.linspace(0.5, 1.5, 100))
    made = table(STEADY, dynamic, score(ngram("never"), np.full(100, np.inf)))
    text = table_text(made)
    assert text.splitlines()[:5] == [
        "model             test   95 %        to best    val  train  perplexity",
        "lstm              2.16  ±1.25                  2.16   2.16        4.48",
        "never         infinite                            -      -    infinite",
        "still learning: after predicting a piece of the test text, these models learn from it:",
        "lstm+dynamic      1.44  ±1.25  −0.721 ±0.000  ^1.44      -        2.72",
    ]
    assert text.splitlines()[-1].startswith("^: settings, weights or the epoch were chosen on val")
    assert max(map(len, text.splitlines())) <= 100
    write_csv(tmp_path / "table.csv", made)
    assert table_text(read_csv(tmp_path / "table.csv")) == text


def test_marks_are_explained_only_if_there_are_any() -> None:
    text = table_text(table(STEADY))
    assert "still learning" not in text
    assert "chosen on val" not in text
    assert "not for other" in text
    # Differences that are not significant have a mark.
    shuffled = np.random.default_rng(0).permutation(STEADY.nll["test"])
    assert len(re.findall(r"~ [+−]0.000 ±\d", table_text(table(STEADY, score(network("other"), shuffled))))) == 1


def test_the_scored_share_is_stated_if_it_is_not_all() -> None:
    shares = {"train": 0.00375, "val": 0.03, "test": 1.0}
    metrics = {
        "char-uniform": {split: {"scored_share": share} for split, share in shares.items()},
        "lstm+dynamic": {split: {"scored_share": shares[split]} for split in ("val", "test")},
    }
    share = describe_share(metrics)
    assert share == "scored: 0.38% of train, 3.00% of val, 100.00% of test, in evenly spaced passages"
    assert table_text(table(STEADY), share).endswith(f"\n{share}\n")
    assert describe_share({"uniform": {split: {"scored_share": 1.0} for split in (*shares, TRAIN_SUBSET)}}) == ""


def test_every_number_of_the_table_is_that_of_its_split() -> None:
    names = ("bits_per_character", "perplexity", "unknown_share")
    splits = {
        split: STEADY.metrics["test"] | {name: 10 * i + j for j, name in enumerate(names)}
        for i, split in enumerate((*SPLITS, TRAIN_SUBSET))
    }
    score_of_a = Scores(network("a"), {}, splits)
    made = Result(score_of_a, (None, None), Comparison(), label="A")
    row = main_table([made]).iloc[0]
    columns = ["train_bits", "val_bits", "test_bits", "seen_bits", "test_perplexity", *names[2:]]
    assert row[columns].tolist() == [0, 10, 20, 30, 21, 22]
    del splits[TRAIN_SUBSET]
    assert main_table([made])["seen_bits"].item() == 0
