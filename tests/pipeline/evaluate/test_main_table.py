"""The main table: the order of its rows, its comparisons and columns, and the names that people read."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.models.info import ModelInfo, mixture_info
from seqlm.pipeline.evaluate.main_table import main_table, table_row
from seqlm.pipeline.evaluate.names import display_names
from seqlm.pipeline.evaluate.uncertainty import Comparison, Interval, critical_value, error_models
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import TRAIN_SUBSET, Scores
from seqlm.vocab.corpus import SPLITS

NOISE, ONES = np.random.default_rng(0).exponential(1.0, 1000), np.ones(1000)
LSTM = network("lstm", run="lstm", epoch="best")
COUNTS = ngram("counts", smoothing="laplace", order=1, chosen_on_val=True)
MIXTURE = ModelInfo(
    "all", "mixture", "char", 1000, dynamic=True, chosen_on_val=True, members=("lstm+dynamic", "counts")
)
MODELS = [
    score(LSTM, NOISE + 0.2), score(LSTM.as_dynamic(), NOISE + 0.1), score(MIXTURE, NOISE + 0.05),
    # The same surprisals in another order.
    score(COUNTS, np.random.default_rng(0).permutation(NOISE) + 0.21),
    score(ngram("uniform", smoothing="uniform", order=0), NOISE + 1.0),
]  # fmt: skip


def table(*scores: Scores, folds: Folds | None = None) -> pd.DataFrame:
    texts = dict.fromkeys(SPLITS, scored_text(len(scores[0].nll["test"])))
    return main_table(scores, {"char": texts}, folds)


def test_models_are_sorted_by_test_and_infinite_ones_come_last() -> None:
    # exp(800) is no number, but the bits are.
    nll = {"weak": 2.0, "never": np.inf, "exploded": 800.0, "strong": 1.0}
    made = table(*(score(network(name), ONES * value) for name, value in nll.items()))
    assert made["model"].tolist() == ["strong", "weak", "exploded", "never"]
    assert made["test_bits"].isna().tolist() == [False, False, False, True]
    assert made["test_perplexity"].isna().tolist() == [False, False, True, True]
    assert made["best_verdict"].fillna("").tolist() == ["", "worse", "worse", ""]


def test_the_best_model_on_val_comes_first_and_is_compared_even_if_another_one_is_best_on_test() -> None:
    lucky = score(network("lucky"), NOISE + 0.2, test=NOISE + 0.1)
    made = table(score(network("weak"), NOISE + 0.3), score(network("chosen"), NOISE + 0.15), lucky)
    assert made["model"].tolist() == ["chosen", "lucky", "weak"]
    # Differences of 0.05 and 0.15 nats.
    vs_best = [np.nan, -0.05 / np.log(2), 0.15 / np.log(2)]
    assert made["best_difference"].tolist() == pytest.approx(vs_best, nan_ok=True)
    assert made["best_verdict"].fillna("").tolist() == ["", "better", "worse"]


def test_rows_have_the_properties_of_models_and_those_that_keep_learning_are_a_group_of_their_own() -> None:
    made = table(*MODELS)
    assert made["model"].tolist() == ["lstm", "counts", "uniform", "all", "lstm+dynamic"]
    # The surprisals of all and lstm differ by the same amount everywhere, those of counts only on average.
    assert made["best_verdict"].fillna("").tolist() == ["", "not significant", "worse", "better", "better"]
    assert made["best_difference"].iloc[3] == pytest.approx(-0.15 / np.log(2))
    rows = made.set_index("model")
    assert rows["family"].tolist() == ["network", "ngram", "ngram", "mixture", "network"]
    assert rows["dynamic"].to_dict() == {score.name: score.info.dynamic for score in MODELS}
    assert rows.index[rows["chosen_on_val"]].tolist() == ["counts", "all", "lstm+dynamic"]
    properties = rows.loc["counts", ["token", "counted_token", "smoothing", "order"]].tolist()
    assert properties == ["char", "char", "laplace", 1]
    assert (rows.loc["lstm", "network"], rows.loc["all", "members"]) == ("lstm", "lstm+dynamic counts")
    assert pd.isna(rows.loc["lstm", "order"])
    assert pd.isna(rows.loc["all", "train_bits"])  # dynamic models are scored on val and test only


def test_intervals_are_those_that_the_folds_calibrate() -> None:
    # Blocks of the reference model have deviation 1, and its folds 4 / sqrt(3).
    signs = np.resize([-1.0, 1.0], 50) * np.sqrt(49 / 50)
    folds = Folds(bits=[[-2.0, 2.0, 2.0, -2.0], [-1.0, 1.0, 1.0, -1.0]], test_blocks=[signs.tolist(), [0.0] * 50])
    made = table(score(LSTM, np.repeat(2 + signs / 10, 20) * np.log(2)), folds=folds)
    # The model's blocks have deviation 0.1, so its standard error is a tenth; that of two passages is sqrt(2) as large.
    margin = critical_value(1, 25, 3) * np.sqrt(2) * 0.1 * 4 / np.sqrt(3)
    assert made.loc[0, ["ci_low", "ci_high"]].tolist() == pytest.approx([2 - margin, 2 + margin])


def test_margins_are_those_of_all_comparisons_together() -> None:
    # Four models are three comparisons with the best.
    made = table(*(score(network(name), NOISE + NOISE[::-1] * n) for n, name in enumerate("abcd")))
    errors = error_models(scored_text(1000), None)
    differences = [scored_text(1000).block_bits(NOISE[::-1] * number, 50) for number in (1, 2, 3)]
    margins = [errors.differences.compare(difference, 3).best_margin for difference in differences]
    assert made["best_margin"].tolist() == pytest.approx([np.nan, *margins], nan_ok=True)


def test_a_short_test_and_infinite_bits_have_no_intervals_and_no_verdicts() -> None:
    short = table(*(score(network(name), np.full(30, bits)) for name, bits in (("a", 1.0), ("b", 2.0))))
    assert short[["ci_low", "best_difference", "best_verdict"]].isna().all(axis=None)
    infinite = table(score(LSTM, NOISE), score(ngram("never"), NOISE, test=ONES * np.inf))
    assert infinite["ci_low"].isna().tolist() == [False, True]
    assert infinite["best_verdict"].isna().all()


def test_every_number_of_the_table_is_that_of_its_split() -> None:
    names = ("bits_per_character", "perplexity", "unknown_share")
    splits = {
        split: MODELS[0].metrics["test"] | {name: 10 * i + j for j, name in enumerate(names)}
        for i, split in enumerate((*SPLITS, TRAIN_SUBSET))
    }
    row = table_row(Scores(network("a"), {}, splits), "A", Interval(), Comparison())
    assert [row.train_bits, row.val_bits, row.test_bits, row.seen_bits] == [0, 10, 20, 30]
    assert (row.test_perplexity, row.unknown_share) == (21, 22)
    del splits[TRAIN_SUBSET]
    assert table_row(Scores(network("a"), {}, splits), "A", Interval(), Comparison()).seen_bits == 0


BY_WORD = ngram("char-by-word-kneser-ney-3", counted_token="word", order=3)
BY_CHARACTER = ngram("char-kneser-ney-6", order=6)
CHAPTER = network(
    "scratch-random", run="scratch-random", network="scratch", sampling="random", train_tokens=10_000,
    as_in_chapter=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (LSTM, "LSTM"),
        (LSTM.as_dynamic(), "LSTM (still learning)"),
        (BY_WORD, "word trigrams (by character)"),
        (BY_WORD.as_dynamic(), "word trigrams (by character, still learning)"),
        (ngram("a", order=6), "character 6-grams (Kneser-Ney)"),
        (ngram("a", order=6, train_tokens=10_000), "character 6-grams (Kneser-Ney, first 10,000 characters)"),
        (ngram("a", "subword", smoothing="laplace"), "subword 2-grams (Laplace)"),
        (ngram("a", smoothing="uniform", order=0), "equally likely characters"),
        (CHAPTER, "the chapter's RNN (from scratch, random)"),
        (replace(CHAPTER, network="rnn", sampling="sequential"), "the chapter's RNN (concise, sequential)"),
        (replace(CHAPTER, as_in_chapter=False), "RNN from scratch (first 10,000 characters)"),
        (network("deep", "subword", network="transformer"), "transformer (subwords)"),
        (network("deep", "word", network="gru"), "GRU (words)"),
    ],
)
def test_a_name_says_what_a_model_is(info: ModelInfo, name: str) -> None:
    assert display_names([info]) == {info.name: name}


def test_a_mixture_is_named_after_its_members() -> None:
    models = [LSTM, LSTM.as_dynamic(), BY_WORD, BY_WORD.as_dynamic(), BY_CHARACTER]
    members = {
        (LSTM, BY_WORD): "LSTM + word trigrams",
        (LSTM, BY_CHARACTER): "LSTM + character 6-grams",
        (LSTM.as_dynamic(), BY_WORD.as_dynamic()): "LSTM + word trigrams, still learning",
        (LSTM, BY_WORD, CHAPTER): "mixture of 3 models (lstm+char-by-word-kneser-ney-3+scratch-random)",
        (LSTM, BY_WORD, BY_CHARACTER): "mixture of 3 models (lstm+char-by-word-kneser-ney-3+char-kneser-ney-6)",
        (LSTM.as_dynamic(), BY_WORD, CHAPTER): "mixture of 3 models, still learning",
    }
    mixtures = {mixture_info(infos): name for infos, name in members.items()}
    names = display_names([*mixtures, *models])
    assert {info: names[info.name] for info in mixtures} == mixtures


def test_two_runs_of_one_kind_have_their_identifiers_in_every_name() -> None:
    runs = [network(run, run=run, network="gru") for run in ("mine", "yours")]
    models = [*runs, *(run.as_dynamic() for run in runs), mixture_info([runs[1].as_dynamic(), BY_WORD])]
    assert list(display_names([*models, BY_WORD]).values()) == [
        "GRU (mine)", "GRU (yours)", "GRU (mine, still learning)", "GRU (yours, still learning)",
        "GRU (yours) + word trigrams, still learning", "word trigrams (by character)",
    ]  # fmt: skip
