"""Stored scores, and the figures that sum up a model's surprisals."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.models.scored_text import measure, stream_of
from seqlm.score.scores import drop_needless_train, load_all, load_scores, save_all, save_scores


def test_a_score_is_stored_with_all_that_is_known_of_the_model(tmp_path: Path) -> None:
    info = ngram("a+b", dynamic=True, members=("a",), counted_token="word")
    stored = score(info, {"val": np.array([1.0, np.inf]), "test": np.array([0.5])}, {"choices": {"x": 1.5}})
    save_scores(tmp_path / "a+b", stored)
    loaded = load_scores(tmp_path / "a+b")
    assert (loaded.info, loaded.metrics, loaded.metadata) == (info, stored.metrics, stored.metadata)
    assert {split: nll.tolist() for split, nll in loaded.nll.items()} == {"val": [1.0, np.inf], "test": [0.5]}


def test_surprisals_stay_in_their_files_until_they_are_needed(tmp_path: Path) -> None:
    save_scores(tmp_path / "m", score(network("m"), {"val": np.arange(5.0), "test": np.arange(3.0)}))
    loaded = load_scores(tmp_path / "m")
    assert isinstance(loaded.nll["val"].base, np.memmap)


def test_scores_that_are_no_longer_made_are_removed(tmp_path: Path) -> None:
    log: list[str] = []
    for names in (["a", "b"], ["c", "a"]):
        save_all(tmp_path, [score(network(name), np.full(4, np.log(2))) for name in names], log.append)
    assert [score.name for score in load_all(tmp_path)] == ["a", "c"]
    assert log[-1].startswith("a: 1.000 bits per character on val, ")


def test_train_stays_where_a_mixture_may_need_it(tmp_path: Path) -> None:
    # The better on val the later the name. No mixture has a seventh-best model, nor a dynamic one, on train.
    static = [score(ngram(name), np.full(4, bits)) for name, bits in zip("abcdef", range(6, 0, -1), strict=True)]
    dynamic = score(ngram("g+dynamic", dynamic=True), {"val": np.ones(4), "test": np.ones(4)})
    save_all(tmp_path, [*static, dynamic], lambda _: None)
    drop_needless_train(tmp_path, "char")
    found = {one.name: one for one in load_all(tmp_path)}
    assert [name for name, one in found.items() if "train" in one.nll] == ["c", "d", "e", "f"]
    assert [path.parent.name for path in sorted(tmp_path.rglob("train.npy"))] == ["c", "d", "e", "f"]
    assert found["a"].metrics["train"] == static[0].metrics["train"]


def test_metrics_by_hand() -> None:
    text = stream_of(np.array([1, 0, 1]), np.ones(2, np.int64), np.array([math.log(4), 0]), 4)
    metrics = measure(np.log([2.0, 8.0]), text)
    assert metrics["perplexity"] == pytest.approx(4)
    assert metrics["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8), and 2 bits for the unknown token: 6 bits for 4 characters.
    assert metrics["bits_per_character"] == pytest.approx(1.5)
    # Separators cost two bits more, and change neither the perplexity nor the nats.
    more = measure(np.log([2.0, 8.0]), replace(text, separator_nll=2 * math.log(2)))
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
