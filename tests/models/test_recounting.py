"""An n-gram model that keeps counting the text that it has predicted."""

import numpy as np
import pytest

from seqlm.models.info import ngram_info
from seqlm.models.ngrams import EvolvingCounts, NGram
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import SplitInfo, Vocab

RNG = np.random.default_rng(0)
TRAIN, TEXT = RNG.zipf(1.5, 400) % 6 + 1, RNG.zipf(1.5, 60) % 6 + 1


def counted(ids: np.ndarray) -> KneserNey:
    return KneserNey(count_ngrams(ids, 7, 3), 3)


def model_after(predicted: np.ndarray) -> KneserNey:
    return counted(np.r_[TRAIN, predicted])


VOCAB = Vocab("char", list("?abcdef"), [0] * 7, "", {"train": SplitInfo(400, 400, 0, "")})


def recounted_nll(ids: np.ndarray, num_updates: int) -> np.ndarray:
    info = ngram_info("kneser-ney", 3, VOCAB).as_dynamic()
    return NGram(info, VOCAB, EvolvingCounts(model_after, num_updates)).token_nll(ids)


def test_each_token_is_predicted_from_train_and_the_text_before_it() -> None:
    found = recounted_nll(TEXT, num_updates=1000)
    models = [counted(np.r_[TRAIN, TEXT[:end]]) for end in range(1, 60)]
    expected = [token_nll(model, TEXT[max(end - 2, 0) : end + 1])[-1] for end, model in enumerate(models, start=1)]
    assert found == pytest.approx(expected)


def test_a_part_is_predicted_with_the_counts_of_the_parts_before_it() -> None:
    # 59 tokens are scored, in 3 parts of 20, 20 and 19.
    found = recounted_nll(TEXT, num_updates=3)
    expected = [token_nll(counted(np.r_[TRAIN, TEXT[: 20 * part + 1]]), TEXT)[20 * part :][:20] for part in range(3)]
    assert found == pytest.approx(np.concatenate(expected))
    changed = TEXT.copy()
    changed[-1] = changed[-1] % 6 + 1
    assert recounted_nll(changed, num_updates=3)[:-1].tolist() == found[:-1].tolist()


@pytest.mark.parametrize("size", [0, 1])
def test_a_text_without_a_second_token_has_no_surprisals(size: int) -> None:
    assert len(recounted_nll(TEXT[:size], num_updates=3)) == 0
