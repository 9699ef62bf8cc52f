"""How minibatches are cut: the book's example, and what must hold for any text."""

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.train.minibatches import random_minibatches, require_length, sequential_minibatches

SAMPLERS = [random_minibatches, sequential_minibatches]


@pytest.mark.parametrize("sample", SAMPLERS)
def test_the_book_cuts_35_numbers_into_three_minibatches(sample: Callable) -> None:
    for seed in range(20):
        batches = list(sample(np.arange(35), 2, 5, np.random.default_rng(seed)))
        # (35 - offset - 1) // 5 is 6 subsequences for every offset from 0 to 4; two make a minibatch.
        assert len(batches) == 3
        for inputs, targets in batches:
            assert inputs.shape == targets.shape == (2, 5)
            assert (targets == inputs + 1).all()
            assert (np.diff(inputs, axis=1) == 1).all()


sizes = {
    "num_tokens": st.integers(4, 300),
    "batch_size": st.integers(1, 6),
    "num_steps": st.integers(1, 12),
    "seed": st.integers(0, 2**32 - 1),
}


@pytest.mark.parametrize("sample", SAMPLERS)
@given(**sizes)
def test_no_window_comes_twice_and_none_is_lost_that_fits(
    sample: Callable, num_tokens: int, batch_size: int, num_steps: int, seed: int
) -> None:
    text = np.arange(num_tokens)
    if num_tokens < num_steps * (batch_size + 1):
        with pytest.raises(DataError):
            list(sample(text, batch_size, num_steps, np.random.default_rng(seed)))
        return
    batches = list(sample(text, batch_size, num_steps, np.random.default_rng(seed)))
    assert batches
    offset = int(np.random.default_rng(seed).integers(num_steps))
    used = np.concatenate([inputs.ravel() for inputs, _ in batches])
    assert len(set(used.tolist())) == len(used)
    assert used.min() >= offset
    assert used.max() + 1 < num_tokens
    assert all((targets == inputs + 1).all() for inputs, targets in batches)
    fitting = (num_tokens - offset - 1) // num_steps // batch_size
    if sample is random_minibatches:
        assert len(batches) == fitting
    else:
        # Lanes are cut first, so a lane may end with a window that is too short.
        assert len(batches) == (num_tokens - offset - 1) // batch_size // num_steps


@given(**sizes)
def test_sequential_rows_go_on_where_they_ended(num_tokens: int, batch_size: int, num_steps: int, seed: int) -> None:
    if num_tokens < num_steps * (batch_size + 1):
        return
    batches = list(sequential_minibatches(np.arange(num_tokens), batch_size, num_steps, np.random.default_rng(seed)))
    for (before, _), (after, _) in itertools.pairwise(batches):
        assert (after[:, 0] == before[:, -1] + 1).all()


def test_offsets_reach_from_zero_to_the_last_step() -> None:
    # The book draws one of num_steps + 1 values; the largest would only repeat the smallest cut.
    firsts = {
        int(next(sequential_minibatches(np.arange(100), 2, 5, np.random.default_rng(seed)))[0][0, 0])
        for seed in range(200)
    }
    assert firsts == {0, 1, 2, 3, 4}


def test_random_minibatches_are_shuffled_and_repeatable() -> None:
    def cut(seed: int) -> list[int]:
        batches = random_minibatches(np.arange(1000), 4, 5, np.random.default_rng(seed))
        return [int(inputs[0, 0]) for inputs, _ in batches]

    assert cut(1) == cut(1)
    assert cut(1) != sorted(cut(1))


def test_a_short_text_names_the_largest_sizes_that_fit() -> None:
    require_length(99, 32, 3)  # 3 * 33 is just enough
    with pytest.raises(DataError, match="batch_size 31 at num_steps 3 or num_steps 2 at batch_size 32"):
        require_length(98, 32, 3)
    with pytest.raises(DataError, match="batch_size 1 at num_steps 5"):
        require_length(10, 32, 35)
    with pytest.raises(DataError, match="1 tokens to train on"):
        require_length(1, 1, 1)


@given(st.integers(2, 500), st.integers(1, 40), st.integers(1, 40))
def test_the_sizes_that_are_named_do_fit(num_tokens: int, batch_size: int, num_steps: int) -> None:
    try:
        require_length(num_tokens, batch_size, num_steps)
    except DataError as error:
        offered = str(error).partition("possible are ")[2]
        for one in offered.split(" or "):
            named = dict(re.findall(r"(batch_size|num_steps) (\d+)", one))
            require_length(num_tokens, int(named["batch_size"]), int(named["num_steps"]))
