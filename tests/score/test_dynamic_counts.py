"""An n-gram model that goes on counting the text it has predicted."""

import numpy as np
import pytest

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey, nats
from seqlm.score.heldout.splits import Stream
from seqlm.score.ngrams.dynamic import recounted_nll
from seqlm.score.settings import DynamicCountsParams
from seqlm.score.surprisals import score_counting_on

RNG = np.random.default_rng(0)
TRAIN, TEXT = RNG.zipf(1.5, 400) % 6 + 1, RNG.zipf(1.5, 60) % 6 + 1
SETTINGS = {"vocab_size": 7, "order": 3}


def counted(ids: np.ndarray) -> KneserNey:
    return KneserNey(count_ngrams(ids, 7, 3), 3)


def test_each_token_is_predicted_from_train_and_the_text_before_it() -> None:
    every = recounted_nll(TRAIN, TEXT, num_times=1000, **SETTINGS)
    expected = [nats(counted(np.r_[TRAIN, TEXT[:end]]), TEXT[max(end - 2, 0) : end + 1])[-1] for end in range(1, 60)]
    assert every == pytest.approx(expected)


def test_pieces_are_predicted_with_what_was_counted_before_them() -> None:
    # 59 tokens are scored, in 3 pieces of 20, 20 and 19.
    found = recounted_nll(TRAIN, TEXT, num_times=3, **SETTINGS)
    expected = [nats(counted(np.r_[TRAIN, TEXT[: 20 * piece + 1]]), TEXT)[20 * piece :][:20] for piece in range(3)]
    assert found == pytest.approx(np.concatenate(expected))
    changed = TEXT.copy()
    changed[-1] = changed[-1] % 6 + 1
    assert recounted_nll(TRAIN, changed, num_times=3, **SETTINGS)[:-1].tolist() == found[:-1].tolist()


def test_what_recurs_costs_less_and_less() -> None:
    found = recounted_nll(TRAIN, np.tile([6, 5, 4, 3], 20), num_times=20, **SETTINGS)
    assert found[-20:].mean() < found[:20].mean() / 3


@pytest.mark.parametrize("size", [0, 1])
def test_a_text_without_a_second_token_has_no_surprisals(size: int) -> None:
    assert len(recounted_nll(TRAIN, TEXT[:size], num_times=3, **SETTINGS)) == 0


def stream(ids: np.ndarray) -> Stream:
    return Stream(ids, len(ids), np.zeros(len(ids)), np.arange(1, len(ids) + 1))


@pytest.mark.parametrize(("num_train", "order"), [(400, 3), (2, 2)])
def test_a_train_too_short_for_its_order_has_a_model_of_a_lower_one(num_train: int, order: int) -> None:
    orders = {"char": 3, "word": 1, "subword": 1}
    params = DynamicCountsParams.model_validate({"order": orders, "num_times": 3, "max_tokens": 400})
    streams = {split: stream(TEXT) for split in ("train", "val", "test")}
    found = score_counting_on("char", TRAIN[:num_train], 7, streams, params)
    assert (found.name, found.adapts, set(found.nats)) == (f"char-kneser-ney-{order}+dynamic", True, {"val", "test"})
