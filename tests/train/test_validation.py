"""Evaluation on val: all of a short one, evenly spaced passages of a long one."""

import numpy as np
import pytest

from seqlm.core.metrics import perplexity
from seqlm.rnn.array_network import rows_nll, stream_nll
from seqlm.rnn.building import build_network
from seqlm.train import trainer as training
from seqlm.train.trainer import val_nll
from small_training import TEXT, config, trained, trainer

LONG = np.random.default_rng(1).integers(1, 6, 20_000)


def test_a_short_val_is_read_completely() -> None:
    network = trainer(config()).network
    for limit in (None, 1000):
        assert np.array_equal(val_nll(network, LONG[:1000], limit), stream_nll(network, LONG[:1000]))


@pytest.mark.parametrize("size", [1025, 1026, 5000, len(LONG)])
def test_every_token_counts_once_if_val_is_read_in_parts(size: int) -> None:
    """Parts start with the text before them, so that each token is predicted nearly as in one stream."""
    network = trained(config()).network
    one_stream = stream_nll(network, LONG[:size])
    for limit in (None, size):
        assert val_nll(network, LONG[:size], limit) == pytest.approx(one_stream, rel=1e-3)


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
    made = trainer(config(eval_tokens=1000), val=LONG)
    seen: list[int] = []

    def counting(network: object, rows: np.ndarray, num_steps: int) -> np.ndarray:
        seen.append(rows[:, 1:].size)
        return rows_nll(network, rows, num_steps)

    monkeypatch.setattr(training, "rows_nll", counting)
    made.run(lambda _: None)
    assert 0 < sum(seen) <= 3 * 1000


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("num_hiddens", [8, 128])
def test_an_evaluation_reads_the_current_weights(num_hiddens: int, optimizer: str) -> None:
    """From 128 hidden units on, the compiled loops keep a packed copy of the weights."""
    made = trained(config(model="lstm", num_hiddens=num_hiddens, optimizer=optimizer, lr=0.05, eval_every=1))
    rebuilt = build_network(made.config, 6, 0)
    rebuilt.load_weights(made.network.weights())
    nll = val_nll(rebuilt, TEXT[:40], None)
    values = [row.val_perplexity for row in made.progress.history]
    assert values[-1] == pytest.approx(perplexity(float(nll.sum()), len(nll)), rel=1e-6)
    assert len({*values}) == len(values)
