"""The trainer in the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqlm.core.errors import DivergenceError
from seqlm.rnn.array_network import stream_nll
from small_training import TEXT, config, equal, trained, trainer


@pytest.mark.parametrize("model", ["scratch", "rnn", "gru", "lstm"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_every_model_learns_a_text_that_repeats(model: str, sampling: str) -> None:
    text = np.tile([1, 2, 3, 4, 5], 120)
    made = trainer(config(model=model, sampling=sampling, num_hiddens=16, num_epochs=25, lr=2.0), text, text[:50])
    # Five equally frequent tokens have perplexity 5 for a model that knows nothing, 1 for one that knows the order.
    assert np.exp(stream_nll(made.network, text[:50]).mean()) > 4
    made.run(lambda _: None)
    assert made.progress.history[-1].val_perplexity < 1.3


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    first, again, other = (
        trained(config(seed=seed, model="lstm", dropout=0.2)).network.weights() for seed in (0, 0, 1)
    )
    assert equal(first, again)
    assert not equal(first, other)


def test_the_best_weights_are_those_of_the_best_evaluation() -> None:
    made = trained(config(keep="best", num_epochs=30, lr=5.0, patience=3), np.resize(TEXT, 600))
    values = [row.val_perplexity for row in made.progress.history]
    epoch, weights = made.chosen_weights()
    assert values[epoch - 1] == min(values)
    assert len(values) == min(epoch + 3, 30)
    assert epoch == len(values) or not equal(weights, made.network.weights())


def test_the_best_weights_are_there_beside_the_last_ones() -> None:
    settings = {"num_epochs": 30, "lr": 5.0, "patience": 3}
    last, best = (trained(config(keep=keep, **settings), np.resize(TEXT, 600)) for keep in ("last", "best"))
    assert equal(last.chosen_weights()[1], last.network.weights())
    better = last.better_weights()
    assert better is not None
    assert equal(better, best.chosen_weights()[1])
    assert best.better_weights() is None


def test_carrying_the_state_changes_the_training() -> None:
    carried, dropped = (trained(config(carry_state=carry_state)) for carry_state in (True, False))
    assert not equal(carried.network.weights(), dropped.network.weights())


def test_the_trainer_follows_its_truncation_and_its_limit() -> None:
    regular, randomized = (trained(config(truncation=truncation)) for truncation in ("regular", "randomized"))
    assert not equal(regular.network.weights(), randomized.network.weights())
    limited = trainer(config(max_flops=6 * regular.num_parameters * 300))
    assert (limited.plan.limit, limited.plan.tokens_to_train) == ("max_flops", 300)


@pytest.mark.parametrize(("grad_clip", "advice"), [(None, "set grad_clip to 1"), (1.0, "lower lr or grad_clip")])
def test_a_loss_that_is_not_finite_is_found_at_once(grad_clip: float | None, advice: str) -> None:
    made = trainer(config(grad_clip=grad_clip))
    made.network.named_weights()["W_hq"].fill_(np.nan)
    message = f"run x: the loss is not finite in epoch 1: {advice}, or choose another seed"
    with pytest.raises(DivergenceError, match=f"^{message}$"):
        made.run(lambda _: None)
    assert made.progress.minibatches == 0


def test_a_row_of_the_history_sums_up_its_minibatches(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(config(num_epochs=2, grad_clip=0.24, lr=0.5))
    nll, norms, compute = [], [], made.network.compute_gradients

    def recording(*arguments: Any) -> Any:
        result = compute(*arguments)
        nll.append(float(result[0].sum()))
        norms.append(float(torch.cat([weight.grad.flatten() for weight in made.network.parameters()]).norm()))
        return result

    monkeypatch.setattr(made.network, "compute_gradients", recording)
    made.run(lambda _: None)
    begin = 0
    for number, row in enumerate(made.progress.history, 1):
        part = slice(begin, begin + (row.tokens - 20 * begin) // 20)
        assert row.train_perplexity == pytest.approx(np.exp(sum(nll[part]) / (20 * len(nll[part]))))
        assert (row.grad_norm, row.grad_norm_max) == pytest.approx((np.mean(norms[part]), max(norms[part])))
        assert row.clipped_share == pytest.approx(np.mean(np.array(norms[part]) > 0.24))
        assert (row.epoch, row.lr) == (number, 0.5)
        begin = part.stop
    assert begin == len(nll)
    assert 0 < np.mean(np.array(norms) > 0.24) < 1


def test_memory_mapped_ids_are_accepted(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", TEXT)
    mapped = np.load(tmp_path / "ids.npy", mmap_mode="r")
    assert equal(trained(config(), mapped).network.weights(), trained(config()).network.weights())


def test_gradients_are_clipped_to_the_limit() -> None:
    """SGD with lr 1 moves the weights by the clipped gradient: one minibatch moves them by at most the limit."""
    made = trainer(config(grad_clip=0.01, num_epochs=1, token_budget=20))
    before = torch.cat([weight.flatten() for weight in made.network.weights().values()])
    made.run(lambda _: None)
    after = torch.cat([weight.flatten() for weight in made.network.weights().values()])
    assert float((after - before).norm()) == pytest.approx(0.01, rel=1e-3)
    (row,) = made.progress.history
    assert row.grad_norm == row.grad_norm_max > 0.01
    assert row.clipped_share == 1
