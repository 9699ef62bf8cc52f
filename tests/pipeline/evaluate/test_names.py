"""The names that people read: what they say, and that no two models have the same."""

from dataclasses import replace

import pytest

from made_scores import network, ngram
from seqlm.models.info import ModelInfo, mixture_info
from seqlm.pipeline.evaluate.names import display_names

LSTM = network("lstm", run="lstm", epoch="best")
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
