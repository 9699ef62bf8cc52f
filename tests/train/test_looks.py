"""Looks at val: all of a short one, evenly spread passages of a long one."""

import numpy as np
import pytest
import torch

from seqlm.core.metrics import perplexity
from seqlm.rnn.building import build_network
from seqlm.rnn.scoring import stream_nll
from seqlm.train.plan import Plan
from seqlm.train.validation import val_nll
from small_training import TEXT, config, trained, trainer

LONG = np.random.default_rng(1).integers(1, 6, 20_000)


def test_a_short_val_is_read_whole() -> None:
    network = trainer(config()).network
    for limit in (None, 1000):
        assert np.array_equal(val_nll(network, LONG[:1000], limit), stream_nll(network, LONG[:1000]))


@pytest.mark.parametrize("size", [1025, 1026, 5000, len(LONG)])
def test_every_token_of_a_longer_val_that_is_read_whole_counts_once(size: int) -> None:
    """Its parts begin with what stands before them, so that each token is predicted nearly as in one stream."""
    network = trained(config()).network
    one_stream = stream_nll(network, LONG[:size])
    for limit in (None, size):
        assert val_nll(network, LONG[:size], limit) == pytest.approx(one_stream, rel=1e-3)


@pytest.mark.parametrize("model", ["scratch", "lstm"])
def test_a_long_val_is_read_in_passages_each_after_a_warm_up(model: str) -> None:
    network = trained(config(model=model)).network
    # 12,800 tokens are 64 passages of 200, of which 64 warm up: 64 * 136 are left.
    nats = val_nll(network, LONG, 12_800)
    assert len(nats) == 64 * 136
    # Passage i starts at i * (20,000 - 200 - 1) / 63, rounded down; from there it is a stream of its own.
    for number in (0, 1, 62, 63):
        start = number * 19_799 // 63
        alone = stream_nll(network, LONG[start : start + 201])[64:]
        assert nats.reshape(64, 136)[number] == pytest.approx(alone, rel=1e-4)
    assert start == 20_000 - 201


def test_the_logits_of_a_large_vocabulary_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    network = trained(config(model="gru")).network
    whole = val_nll(network, LONG, 12_800)
    monkeypatch.setattr("seqlm.rnn.surprisals._LOGITS_AT_ONCE", 6 * 64 * 7)  # seven steps of all passages at a time
    assert val_nll(network, LONG, 12_800) == pytest.approx(whole, rel=1e-4)


def test_passages_say_what_the_whole_says() -> None:
    """A text that repeats is learnt; its perplexity over passages is that over all of it."""
    cycle = np.tile([1, 2, 3, 4, 5], 4000)
    network = trained(config(num_epochs=20, lr=2.0, num_hiddens=16), cycle[:300]).network
    whole, part = (val_nll(network, cycle, limit) for limit in (None, 10_000))
    assert perplexity(float(part.sum()), len(part)) == pytest.approx(
        perplexity(float(whole.sum()), len(whole)), rel=0.1
    )


def test_a_training_looks_at_no_more_than_its_setting_says() -> None:
    made = trainer(config(eval_tokens=1000), val=LONG)
    seen: list[int] = []
    forward = made.network.forward

    def counting(ids: torch.Tensor, *others: object) -> object:
        seen.append(ids.numel())
        return forward(ids, *others)

    made.network.forward = counting
    made.run(lambda _: None)
    assert 0 < sum(seen) <= 3 * 1000


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("num_hiddens", [8, 128])
def test_a_look_reads_the_weights_of_its_moment(num_hiddens: int, optimizer: str) -> None:
    """From 128 hidden units on the compiled loops keep the weights as they like to read them."""
    made = trained(config(model="lstm", num_hiddens=num_hiddens, optimizer=optimizer, lr=0.05, eval_every=1))
    anew = build_network(made.config, 6, 0)
    anew.load_weights(made.network.weights())
    nats = val_nll(anew, TEXT[:40], None)
    values = [leg.val_perplexity for leg in made.progress.history]
    assert values[-1] == pytest.approx(perplexity(float(nats.sum()), len(nats)), rel=1e-6)
    assert len({*values}) == len(values)


def test_looks_take_no_longer_than_training() -> None:
    """A quarter of what is trained between two looks: 20,000 tokens an epoch are 999 minibatches of 20."""
    plan = Plan.of(config(num_epochs=12), 20_000, 100)
    between = 3 * 999 * 20
    assert plan.val_token_budget(config(num_epochs=12, eval_every=3, eval_tokens=None)) == between // 4
    assert plan.val_token_budget(config(num_epochs=12, eval_every=100, eval_tokens=None)) == 4 * between // 4
    assert plan.val_token_budget(config(num_epochs=12, eval_every=3, eval_tokens=12_000)) == 12_000
    assert plan.val_token_budget(config(num_epochs=12, eval_every=1, eval_tokens=None)) == 10_000
