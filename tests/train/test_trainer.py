"""Minibatches, the trainer in the library, and its evaluations on val: all of a short one, passages of a long one."""

import itertools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError, DivergenceError, ParamsError
from seqlm.networks.building import build_network
from seqlm.networks.network import rows_nll, stream_nll
from seqlm.train import trainer as training
from seqlm.train.callbacks import describe_plan
from seqlm.train.minibatches import Plan, fits, minibatches
from seqlm.train.ranks import Ranks
from seqlm.train.trainer import Trainer, scheduled_lr, val_nll
from small_training import TEXT, config, equal, trained, trainer


@pytest.mark.parametrize("model", ["scratch", "rnn", "gru", "lstm"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_every_model_learns_a_text_that_repeats(model: str, sampling: str) -> None:
    text = np.tile([1, 2, 3, 4, 5], 120)
    made = trainer(config(model=model, sampling=sampling, num_hiddens=16, num_epochs=25, lr=2.0), text, text[:50])
    # Five equally frequent tokens have perplexity 5 for a model that knows nothing, 1 for one that knows the order.
    assert np.exp(stream_nll(made.network, text[:50]).mean()) > 4
    made.train(lambda _: None)
    assert made.progress.history[-1].val_perplexity < 1.3


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"model": "lstm", "dropout": 0.2}, {"seed": 1}),
        ({"optimizer": "adamw", "lr": 0.01}, {"weight_decay": 0.1}),
        ({"sampling": "sequential"}, {"sampling": "random"}),
        ({"truncation": "regular"}, {"truncation": "randomized"}),
    ],
)
def test_equal_settings_give_equal_weights_and_others_do_not(settings: Any, changes: Any) -> None:
    first, again, other = (
        trained(config(**chosen)).network.weight_copies() for chosen in (settings, settings, settings | changes)
    )
    assert equal(first, again)
    assert not equal(first, other)


def watched(made: Trainer, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list of each minibatch of a training: what the network is given, its loss, the norm of its gradients."""
    calls, compute = list[Any](), made.network.compute_gradients

    def watching(*given: Any) -> Any:
        result = compute(*given)
        calls.append(SimpleNamespace(given=given, nll=result[0].sum(), norm=np.linalg.norm(made.network.gradients[0])))
        return result

    monkeypatch.setattr(made.network, "compute_gradients", watching)
    return calls


def test_weights_minibatches_and_masks_are_drawn_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for seed in (0, 1):
        made = trainer(config(seed=seed, truncation="randomized", keep_probability=0.8))
        weights, calls = made.network.weight_copies()["W_hq"], watched(made, monkeypatch)
        made.train()
        inputs, _, _, draw_mask, truncation = calls[0].given
        dropout = draw_mask(1000, 0.25)
        drawn.append((weights, inputs, dropout, truncation))
        # A factor of 0 with probability 1/4 and 4/3 otherwise; each step continues with probability 4/5.
        for factors, keep in ((dropout, 3 / 4), (np.array([call.given[4] for call in calls]), 4 / 5)):
            assert np.unique(factors).tolist() == pytest.approx([0, 1 / keep])
            assert factors.mean() == pytest.approx(1, abs=0.08)
    assert [np.array_equal(*both) for both in zip(*drawn, strict=True)] == [False] * 4


@pytest.mark.parametrize(("sampling", "carries"), [("sequential", True), ("random", False)])
def test_each_epoch_cuts_the_text_anew_and_starts_from_the_zero_state(
    sampling: str, carries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer(config(sampling=sampling, num_epochs=6))
    calls, firsts = watched(made, monkeypatch), [0]
    made.train(lambda now: firsts.append(len(calls)) if now.progress.epoch_minibatches == 0 else None)
    assert len(firsts) == 7
    for number, call in enumerate(calls):
        assert call.given[2].any() == (carries and number not in firsts)
    assert len({calls[number].given[0].tobytes() for number in firsts[:-1]}) > 1


def test_the_chosen_weights_are_the_last_or_those_of_the_best_evaluation() -> None:
    last, best = (
        trained(config(checkpoint=checkpoint, num_epochs=30, lr=5.0, patience=3), np.resize(TEXT, 600))
        for checkpoint in ("last", "best")
    )
    values = [row.val_perplexity for row in best.progress.history]
    epoch, weights = best.chosen_weights()
    assert values[epoch - 1] == min(values)
    assert len(values) == min(epoch + 3, 30)
    assert epoch == len(values) or not equal(weights, best.network.weight_copies())
    assert equal(last.chosen_weights()[1], last.network.weight_copies())


@pytest.mark.parametrize(("grad_clip", "advice"), [(None, "set grad_clip to 1"), (1.0, "lower lr or grad_clip")])
def test_a_loss_that_is_not_finite_is_found_at_once(grad_clip: float | None, advice: str) -> None:
    made = trainer(config(grad_clip=grad_clip))
    made.network.named_weights()["W_hq"].fill(np.nan)
    message = f"run x: the loss is not finite in epoch 1: {advice}, or choose another seed"
    with pytest.raises(DivergenceError, match=f"^{message}$"):
        made.train(lambda _: None)
    assert made.progress.minibatches == 0


def test_a_row_of_the_history_sums_up_its_minibatches(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(config(num_epochs=2, grad_clip=0.24, lr=0.5))
    calls, begin = watched(made, monkeypatch), 0
    made.train(lambda _: None)
    for number, row in enumerate(made.progress.history, 1):
        part = calls[begin : row.tokens // 20]
        norms = np.array([call.norm for call in part])
        assert row.train_perplexity == pytest.approx(np.exp(np.mean([call.nll for call in part]) / 20))
        assert row.grad_norm == pytest.approx(norms.mean())
        assert row.clipped_share == pytest.approx(np.mean(norms > 0.24))
        assert 0 < row.clipped_share < 1
        assert row.epoch == number
        begin += len(part)
    assert begin == len(calls)


def test_gradients_are_clipped_to_the_limit() -> None:
    """SGD with lr 1 moves the weights by the clipped gradient: one minibatch moves them by at most the limit."""
    made = trainer(config(grad_clip=0.01, num_epochs=1, token_budget=20))
    before = made.network.weight_copies()
    made.train(lambda _: None)
    moves = [(weight - before[name]).reshape(-1) for name, weight in made.network.named_weights().items()]
    assert float(np.linalg.norm(np.concatenate(moves))) == pytest.approx(0.01, rel=1e-3)
    (row,) = made.progress.history
    assert row.grad_norm > 0.01
    assert row.clipped_share == 1


def test_the_schedule_covers_what_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a warm-up of one half, the rate is highest in the middle and falls to a hundredth at the end."""
    cosine = {"schedule": "cosine", "warmup_share": 0.5, "lr": 0.1, "optimizer": "adamw"}
    made, rates = trainer(config(token_budget=800, num_epochs=40, **cosine)), list[float]()
    monkeypatch.setattr(made.network, "step", rates.append)
    made.train(lambda _: None)
    assert len(rates) == 40
    # After minibatch i of 40, i / 40 is done: its rate is 0.1 * i / 20 up to i = 20. No minibatch has rate 0.
    assert rates[:2] == pytest.approx([0.005, 0.01])
    assert max(rates) == rates[19] == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(0.001)
    # Without a budget, after minibatch i of the 9 in the first of 4 epochs, i / 36 is done.
    made = trainer(config(num_epochs=4, **cosine))
    monkeypatch.setattr(made.network, "step", rates.append)
    made.train(lambda _: None)
    assert rates[40:42] == pytest.approx([0.1 / 18, 0.2 / 18])


def test_the_schedule_by_hand() -> None:
    assert scheduled_lr(config(lr=0.5), 0.7) == 0.5
    cosine = config(schedule="cosine", lr=2.0, warmup_share=0.2)
    # It rises to 2 during the first fifth, is 2 * (0.01 + 0.99 / 2) half-way through the rest, and ends at 0.02.
    shares = [0, 0.05, 0.2, 0.6, 1]
    assert [scheduled_lr(cosine, share) for share in shares] == pytest.approx([0, 0.5, 2, 1.01, 0.02])
    assert scheduled_lr(config(schedule="cosine", lr=2.0), 0) == 2


LONG = np.random.default_rng(1).integers(1, 6, 20_000)


def test_a_short_val_is_read_completely() -> None:
    network = trainer(config()).network
    assert np.array_equal(val_nll(network, LONG[:1000], 1000), stream_nll(network, LONG[:1000]))


@pytest.mark.parametrize("size", [1025, 1026, 5000, len(LONG)])
def test_every_token_counts_once_if_val_is_read_in_parts(size: int) -> None:
    """Parts start with the text before them, so that each token is predicted nearly as in one stream."""
    network = trained(config()).network
    one_stream = stream_nll(network, LONG[:size])
    assert val_nll(network, LONG[:size], size) == pytest.approx(one_stream, rel=1e-3)


@pytest.mark.parametrize(("model", "vocab_size"), [("scratch", 6), ("lstm", 6), ("gru", 3000)])
def test_a_long_val_is_read_in_passages_each_after_a_warm_up(model: str, vocab_size: int) -> None:
    # With 3,000 tokens, the logits of all passages would fill 154 MB: they are computed some steps at a time.
    run = config(model=model)
    network = trained(run).network if vocab_size == 6 else build_network(run, vocab_size, 0)
    # 12,800 tokens are 64 passages of 200, of which 64 warm up: 64 * 136 are left.
    nll = val_nll(network, LONG, 12_800)
    assert len(nll) == 64 * 136
    # Passage i starts at i * (20,000 - 200 - 1) / 63, rounded down; from there it is a stream of its own.
    for number in (0, 1, 62, 63):
        start = number * 19_799 // 63
        alone = stream_nll(network, LONG[start : start + 201])[64:]
        assert nll.reshape(64, 136)[number] == pytest.approx(alone, rel=1e-4)
    assert start == 20_000 - 201


def test_a_training_reads_no_more_of_val_than_its_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    made, read = trainer(config(eval_tokens=1000), val=LONG), mock.Mock(wraps=rows_nll)
    monkeypatch.setattr(training, "rows_nll", read)
    made.train(lambda _: None)
    assert 0 < sum(call.args[1][:, 1:].size for call in read.call_args_list) <= 3 * 1000


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
