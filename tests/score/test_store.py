"""Stored scores."""

from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score
from seqlm.core.errors import DataError
from seqlm.score.store import load_score, load_scores, save_score, save_scores


def test_a_score_is_stored_with_all_that_is_known_of_the_model(tmp_path: Path) -> None:
    info = ngram("a+b", dynamic=True, members=("a",), counted_token="word")
    stored = score(info, {"val": np.array([1.0, np.inf]), "test": np.array([0.5])}, {"choices": {"x": 1.5}})
    save_score(tmp_path / "a+b", stored)
    loaded = load_score(tmp_path / "a+b")
    assert (loaded.info, loaded.metrics, loaded.metadata) == (info, stored.metrics, stored.metadata)
    assert {split: nats.tolist() for split, nats in loaded.nats.items()} == {"val": [1.0, np.inf], "test": [0.5]}
    (tmp_path / "a+b").rename(tmp_path / "c")
    with pytest.raises(DataError, match=r"c: holds the score of 'a\+b': score again"):
        load_score(tmp_path / "c")


def test_surprisals_stay_in_their_files_until_they_are_needed(tmp_path: Path) -> None:
    save_score(tmp_path / "m", score(network("m"), {"val": np.arange(5.0), "test": np.arange(3.0)}))
    loaded = load_score(tmp_path / "m")
    assert isinstance(loaded.nats["val"].base, np.memmap)
    np.save(tmp_path / "m" / "test.npy", np.ones(3))
    assert loaded.nats["test"].tolist() == [1, 1, 1]  # nothing was read before
    with pytest.raises(DataError, match=r"test\.npy: its content does not match the SHA-256 in score\.json"):
        load_score(tmp_path / "m")


def test_scores_that_are_no_longer_made_are_removed(tmp_path: Path) -> None:
    log: list[str] = []
    for names in (["a", "b"], ["c", "a"]):
        save_scores(tmp_path, [score(network(name), np.full(4, np.log(2))) for name in names], log.append)
    assert [score.name for score in load_scores(tmp_path)] == ["a", "c"]
    assert log[-1].startswith("a: 1.000 bits per character on val, ")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing: no such folder: run the stage that writes it"):
        load_scores(tmp_path / "nothing")
