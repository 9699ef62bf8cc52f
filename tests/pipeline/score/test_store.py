"""Stored scores, the figures that sum up a model's surprisals, perplexity by the amount of context, and excerpts."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiled_networks import strong_network
from made_scores import network, ngram, score, scored_text, stream_of
from seqlm.core.errors import DataError
from seqlm.core.metrics import perplexity
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import measure
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.score import scores
from seqlm.pipeline.score.excerpts import passage, per_character
from seqlm.vocab.kinds import BYTE_TOKENS, token_kind
from seqlm.vocab.vocabulary import SplitInfo, Vocab

BIT = math.log(2)


def test_a_score_is_stored_with_all_that_is_known_of_the_model(tmp_path: Path) -> None:
    info = ngram("a+dynamic", dynamic=True, members=("a",), counted_token="word")
    stored = score(info, {"val": np.array([1.0, np.inf]), "test": np.array([0.5])}, {"positions": [1.5, None]})
    scores.save_scores(tmp_path / "a+dynamic", stored)
    loaded = scores.load_scores(tmp_path / "a+dynamic")
    assert (loaded.info, loaded.metrics, loaded.metadata) == (info, stored.metrics, stored.metadata)
    assert {split: nll.tolist() for split, nll in loaded.nll.items()} == {"val": [1.0, np.inf], "test": [0.5]}
    assert isinstance(loaded.nll["val"].base, np.memmap)  # read when it is needed
    (tmp_path / "a+dynamic" / "val.npy").unlink()
    with pytest.raises(DataError, match=r"val\.npy: no such file"):
        scores.load_scores(tmp_path / "a+dynamic")


def test_scores_that_are_no_longer_made_are_removed(tmp_path: Path) -> None:
    log: list[str] = []
    for names in (["a", "b"], ["c", "a"]):
        scores.save_scores_folder(tmp_path, [score(network(name), np.full(4, BIT)) for name in names], log.append)
    assert [score.name for score in scores.load_scores_folder(tmp_path)] == ["a", "c"]
    assert log[-1].startswith("a: 1.000 bits per character on the validation set, ")


def test_metrics_by_hand() -> None:
    text = stream_of(np.array([1, 0, 1]), np.ones(2, np.int64), np.array([math.log(4), 0]), 4)
    metrics = measure(np.log([2.0, 8.0]), text)
    assert metrics["perplexity"] == pytest.approx(4)
    assert metrics["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8), and 2 bits for the unknown token: 6 bits for 4 characters.
    assert metrics["bits_per_character"] == pytest.approx(1.5)
    # Separators cost two bits more, and change neither the perplexity nor the nats.
    more = measure(np.log([2.0, 8.0]), replace(text, separator_nll=2 * BIT))
    assert more == metrics | {"bits_per_character": pytest.approx(2)}


@pytest.mark.parametrize(
    ("nll", "finite", "reason"),
    [
        ([1.0, np.inf], set(), "1 tokens have probability 0, 0 none; inf nats per token"),
        ([1.0, np.nan], set(), "0 tokens have probability 0, 1 none; nan nats per token"),
        # exp(800) is too large for a number; 800 nats are 1154 bits.
        ([800.0, 800.0], {"nats_per_token", "bits_per_character"}, "0 tokens have probability 0, 0 none; 800 nats"),
    ],
)
def test_infinite_values_have_a_reason(nll: list[float], finite: set[str], reason: str) -> None:
    metrics = measure(np.array(nll), scored_text(2))
    assert {key for key in ("nats_per_token", "perplexity", "bits_per_character") if metrics[key] is not None} == finite
    assert metrics["reason"].startswith(reason)


TEXT = np.random.default_rng(0).integers(0, 5, 400)
VOCAB = Vocab("char", list("?abcd"), [0] * 5, "", {"train": SplitInfo(400, 400, 0, "")})


def test_a_text_of_one_window_gives_the_surprisal_at_each_position() -> None:
    model = StaticNetwork(network("m"), VOCAB, strong_network(5))
    expected = [perplexity(value, 1) for value in stream_nll(strong_network(5), TEXT[:30])]
    assert scores.perplexity_by_position(model, TEXT[:30]) == pytest.approx(expected, rel=1e-5)


def test_windows_are_spread_over_all_of_the_text() -> None:
    """The first windows repeat one token; later ones do not, and the model knows only the first ones."""
    model = NGram.of(KneserNey(count_ngrams(np.ones(400, np.int64), 5, 2), 2), VOCAB)
    ones = np.ones(130 + 2 * scores.MAX_WINDOWS, np.int64)
    mixed = np.append(ones, TEXT[TEXT != 1])
    assert len(scores.perplexity_by_position(model, ones)) == 128
    assert max(scores.perplexity_by_position(model, ones)) * 1.2 < min(scores.perplexity_by_position(model, mixed))


SUBWORD = token_kind("subword")
# é is C3 A9 in UTF-8.
FIRST, SECOND = BYTE_TOKENS[0xC3], BYTE_TOKENS[0xA9]


def test_the_bits_of_a_subword_are_shared_evenly_by_its_characters() -> None:
    # The first subword has no surprisal; " sea" has 4 characters and 6 bits, é costs 5 + 2 bits in its two bytes.
    found = passage(SUBWORD, ["the", " sea", FIRST, SECOND], np.array([6, 5, 2]) * BIT, 100)
    assert found["tokens"] == ["t", "h", "e", " ", "s", "e", "a", "é"]
    assert found["bits"] == [None, None, None, 1.5, 1.5, 1.5, 1.5, 7.0]
    assert found["separator"] == ""
    # The first token may be a byte of a character.
    assert passage(SUBWORD, [FIRST, SECOND, "a"], np.array([5, 1]) * BIT, 9)["bits"] == [5.0, 1.0]


def test_bytes_that_are_no_character_are_shown_as_a_replacement_character() -> None:
    # A text may end in the middle of a character.
    found = passage(SUBWORD, ["a", FIRST], np.array([3.0]) * BIT, 100)
    assert (found["tokens"], found["bits"]) == (["a", "\ufffd"], [None, 3.0])
    assert len(per_character(SUBWORD, [SECOND, SECOND, "a"], [1.0, 1.0, 1.0])[1]) == len("\ufffd\ufffda")


def test_only_the_first_token_is_not_scored() -> None:
    word = token_kind("word")
    shown = passage(word, ["the", "sea", "is", "there"], np.array([np.nan, np.inf, 2 * BIT]), 100)
    assert shown["bits"] == [None, "infinite", "infinite", 2.0]
    assert passage(word, [], np.empty(0), 100)["bits"] == []
