"""The names that people read: what they say, and that no two models have the same."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_scores import network, ngram
from seqlm.models.info import ModelInfo, describe_mixture, display_names
from seqlm.vocab.kinds import KINDS

LSTM = network("lstm", run="lstm", epoch="best")
BY_WORD = ngram("char-by-word-kneser-ney-3", counted_token="word", order=3)
BY_CHARACTER = ngram("char-kneser-ney-6", order=6)
CHAPTER = network(
    "scratch-random",
    run="scratch-random",
    network="scratch",
    sampling="random",
    train_tokens=10_000,
    as_in_chapter=True,
)


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (LSTM, "LSTM"),
        (LSTM.as_dynamic(), "LSTM (still learning)"),
        (BY_WORD, "word trigrams"),
        (BY_WORD.as_dynamic(), "word trigrams (still learning)"),
        (replace(BY_WORD, order=4), "word 4-grams"),
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
        (LSTM, BY_WORD, CHAPTER): "mixture of 3 models",
        (LSTM.as_dynamic(), BY_WORD, CHAPTER): "mixture of 3 models, still learning",
    }
    mixtures = {describe_mixture(infos): name for infos, name in members.items()}
    names = display_names([*mixtures, *models])
    assert {info: names[info.name] for info in mixtures} == mixtures


def test_two_runs_of_one_kind_have_their_identifiers_in_every_name() -> None:
    runs = [network(run, run=run, network="gru") for run in ("mine", "yours")]
    models = [*runs, *(run.as_dynamic() for run in runs), describe_mixture([runs[1].as_dynamic(), BY_WORD])]
    assert list(display_names([*models, BY_WORD]).values()) == [
        "GRU (mine)", "GRU (yours)", "GRU (mine, still learning)", "GRU (yours, still learning)",
        "GRU (yours) + word trigrams, still learning", "word trigrams",
    ]  # fmt: skip


IDENTIFIERS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,4}", fullmatch=True)
COUNTS = st.one_of(st.none(), st.integers(1, 3))


@st.composite
def models(draw: st.DrawFn) -> list[ModelInfo]:
    """Return models with properties that often agree, their dynamic models, and mixtures of any of them."""
    found: list[ModelInfo] = []
    for name in draw(st.lists(IDENTIFIERS, min_size=1, max_size=6, unique=True)):
        changes: dict[str, Any] = {"token": draw(st.sampled_from(KINDS)), "train_tokens": draw(COUNTS)}
        if draw(st.booleans()):
            kinds, sampling = draw(st.sampled_from(["rnn", "scratch", "mgu"])), draw(st.sampled_from(["random", None]))
            changes |= {"network": kinds, "run": name, "sampling": sampling, "as_in_chapter": draw(st.booleans())}
            found.append(network(name, **changes))
        else:
            changes |= {"counted_token": draw(st.sampled_from(KINDS)), "order": draw(st.integers(0, 2))}
            found.append(ngram(name, **changes))
    found += [info.as_dynamic() for info in found if draw(st.booleans())]
    members = st.lists(st.sampled_from(found), min_size=1, max_size=3, unique_by=lambda info: info.name)
    mixtures = [describe_mixture(infos) for infos in draw(st.lists(members, max_size=3))]
    return list({info.name: info for info in [*found, *mixtures]}.values())


@given(models())
def test_no_two_models_have_the_same_name(infos: list[ModelInfo]) -> None:
    names = display_names(infos)
    assert list(names) == [info.name for info in infos]
    assert len(set(names.values())) == len(infos)
    # A name depends on which models there are, not on their order.
    assert display_names(infos[::-1]) == names
