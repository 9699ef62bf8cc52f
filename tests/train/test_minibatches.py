"""Minibatches: how a text is cut, how long training is, and what is refused."""

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError, ParamsError
from seqlm.train.callbacks import describe_plan
from seqlm.train.minibatches import Plan, fits, minibatches
from seqlm.train.ranks import Ranks
from seqlm.train.trainer import Trainer
from small_training import TEXT, config, equal, trained, trainer

SAMPLERS = [partial(minibatches, "random"), partial(minibatches, "sequential")]


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
def test_windows_are_used_once(sample: Callable, num_tokens: int, batch_size: int, num_steps: int, seed: int) -> None:
    text = np.arange(num_tokens, dtype=np.uint16)
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
    assert {part.dtype for batch in batches for part in batch} == {np.dtype(np.int64)}
    left = num_tokens - offset - 1
    if sample is SAMPLERS[0]:
        assert len(batches) == left // num_steps // batch_size
    else:
        # Rows are cut first, so a row may end with a window that is too short.
        assert len(batches) == left // batch_size // num_steps
        for (before, _), (after, _) in itertools.pairwise(batches):
            assert (after[:, 0] == before[:, -1] + 1).all()
    assert len(batches) > 0


def test_random_minibatches_are_shuffled() -> None:
    batches = minibatches("random", np.arange(1000), 4, 5, np.random.default_rng(1))
    assert (np.diff([inputs[0, 0] for inputs, _ in batches]) < 0).any()


def test_a_budget_that_is_not_reached_changes_nothing() -> None:
    # 200 tokens give (200 - 1) // 20 = 9 minibatches of 4 x 5, 180 tokens an epoch, 540 in three.
    without, unreached = trained(config()), trained(config(token_budget=540))
    assert unreached.plan.num_minibatches is None
    assert unreached.progress == without.progress
    assert equal(unreached.network.weight_copies(), without.network.weight_copies())
    assert [row.epoch for row in without.progress.history] == [1, 2, 3]
    assert all(isinstance(row.epoch, int) for row in without.progress.history)


def test_a_budget_divides_a_training_into_equal_parts() -> None:
    for budget, tokens, epochs in (
        # 139 tokens are 6 minibatches of 20, so three rows of 2; an epoch has 9.
        (139, [40, 80, 120], [2 / 9, 4 / 9, 6 / 9]),
        # 500 tokens are 25 minibatches; rows end within epochs of 9 minibatches, or 8 if the offset is large.
        (500, [160, 320, 500], None),
        # Less than a minibatch is one minibatch.
        (1, [20], [1 / 9]),
    ):
        progress = trained(config(token_budget=budget)).progress
        assert [row.tokens for row in progress.history] == tokens
        assert progress.tokens == progress.plan.tokens_to_train == tokens[-1]
        assert all(row.val_perplexity is not None for row in progress.history)
        assert epochs is None or [row.epoch for row in progress.history] == epochs


def test_a_training_describes_its_plan() -> None:
    assert describe_plan(Plan.of(config(), 200)) == "540 tokens to train on: 3 epochs of 180"
    limited = "40 tokens to train on: 0.222 epochs of 180, limited by token_budget"
    assert describe_plan(Plan.of(config(token_budget=45), 200)) == limited


def test_evaluations_and_patience_count_those_parts() -> None:
    bounded = config(token_budget=400, num_epochs=10, eval_every=3, checkpoint="best")
    evaluated = [row.val_perplexity is not None for row in trained(bounded).progress.history]
    assert evaluated == [False, False, True] * 3 + [True]
    # The learning rate is so small that no weight changes: the second evaluation is not better than the first.
    stopped = trained(config(token_budget=400, num_epochs=10, patience=1, lr=1e-9, grad_clip=1e-9))
    assert len(stopped.progress.history) == 2


def test_evaluating_takes_no_longer_than_training() -> None:
    """A quarter of the tokens trained between two evaluations: 20,000 tokens an epoch are 999 minibatches of 20."""
    plan = Plan.of(config(num_epochs=12), 20_000)
    quarter = 3 * 999 * 20 // 4
    # A whole number of them: 6 / 7 of 100,000 are 85,714, of which a quarter is 21,428.
    odd = Plan.of(config(num_epochs=7, token_budget=100_000), 20_000)
    assert str(odd.val_token_budget(config(eval_every=6, eval_tokens=None))) == "21428"
    for eval_every, eval_tokens, budget in ((3, None, quarter), (100, None, 4 * quarter), (3, 12_000, 12_000)):
        assert plan.val_token_budget(config(eval_every=eval_every, eval_tokens=eval_tokens)) == budget
    assert plan.val_token_budget(config(eval_every=1, eval_tokens=None)) == 10_000


@pytest.mark.parametrize("truncation", ["regular", "full"])
def test_a_text_too_short_for_a_minibatch_is_refused(truncation: str) -> None:
    # 5 * (4 + 1) tokens are just enough for 4 x 5; one window for each of 4 rows needs at least 5 tokens.
    least = {"regular": 25, "full": 5}[truncation]
    assert len(trained(config(truncation=truncation), TEXT[:least]).progress.history) == 3
    with pytest.raises(DataError, match="too few for minibatches of 4 x"):
        trainer(config(truncation=truncation), TEXT[: least - 1])


def test_full_truncation_spans_each_row_with_one_window() -> None:
    assert trainer(config(truncation="full")).plan.num_steps == 200 // 5


def test_rows_that_processes_cannot_divide_evenly_are_refused() -> None:
    with pytest.raises(ParamsError, match="batch_size = 4: must be a multiple of the 3 processes"):
        Trainer(config(), 6, TEXT, TEXT[:50], torch.device("cpu"), Ranks(0, 3))
