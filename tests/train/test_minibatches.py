"""How minibatches are cut: the book's example, and what must hold for any text."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.train.minibatches import fits, random_minibatches, sequential_minibatches

SAMPLERS = [random_minibatches, sequential_minibatches]


@pytest.mark.parametrize("sample", SAMPLERS)
def test_the_book_cuts_35_numbers_into_three_minibatches(sample: Callable) -> None:
    firsts = set()
    for seed in range(200):
        batches = list(sample(np.arange(35), 2, 5, np.random.default_rng(seed)))
        # (35 - offset - 1) // 5 is 6 subsequences for every offset from 0 to 4; two make a minibatch.
        assert len(batches) == 3
        for inputs, targets in batches:
            assert inputs.shape == targets.shape == (2, 5)
            assert (targets == inputs + 1).all()
            assert (np.diff(inputs, axis=1) == 1).all()
        firsts.add(min(int(inputs.min()) for inputs, _ in batches))
    # The book draws one of num_steps + 1 offsets; the largest would only repeat the smallest cut.
    assert firsts == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("sample", SAMPLERS)
@given(st.integers(4, 300), st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_no_window_is_used_twice_and_all_that_fit_are_used(
    sample: Callable, num_tokens: int, batch_size: int, num_steps: int, seed: int
) -> None:
    text = np.arange(num_tokens)
    if not fits(num_tokens, batch_size, num_steps):
        with pytest.raises(ValueError, match="too few"):
            list(sample(text, batch_size, num_steps, np.random.default_rng(seed)))
        return
    batches = list(sample(text, batch_size, num_steps, np.random.default_rng(seed)))
    offset = int(np.random.default_rng(seed).integers(num_steps))
    used = np.concatenate([inputs.ravel() for inputs, _ in batches])
    assert len(set(used.tolist())) == len(used)
    assert used.min() >= offset
    assert used.max() + 1 < num_tokens
    assert all((targets == inputs + 1).all() for inputs, targets in batches)
    left = num_tokens - offset - 1
    if sample is random_minibatches:
        assert len(batches) == left // num_steps // batch_size
    else:
        # Rows are cut first, so a row may end with a window that is too short.
        assert len(batches) == left // batch_size // num_steps
        for (before, _), (after, _) in itertools.pairwise(batches):
            assert (after[:, 0] == before[:, -1] + 1).all()
    assert len(batches) > 0


@pytest.mark.parametrize("sample", SAMPLERS)
def test_an_epoch_resumes_with_the_minibatches_that_are_left(sample: Callable) -> None:
    batches = list(sample(np.arange(100), 2, 5, np.random.default_rng(0)))
    rest = list(sample(np.arange(100), 2, 5, np.random.default_rng(0), done=4))
    assert np.array_equal([inputs for inputs, _ in batches[4:]], [inputs for inputs, _ in rest])


def test_random_minibatches_are_shuffled_and_repeatable() -> None:
    first, again = (np.array(list(random_minibatches(np.arange(1000), 4, 5, np.random.default_rng(1)))) for _ in "ab")
    assert np.array_equal(first, again)
    assert (np.diff(first[:, 0, 0, 0]) < 0).any()
