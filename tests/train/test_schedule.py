"""The learning rate during training."""

import pytest

from seqlm.train.schedule import scheduled_lr
from small_training import config, trained


def test_the_schedule_covers_what_is_trained() -> None:
    """With a warm-up of one half, the rate is highest in the middle and falls to a hundredth at the end."""
    cosine = {"schedule": "cosine", "warmup_share": 0.5, "lr": 0.1, "optimizer": "adamw"}
    rates = [row.lr for row in trained(config(token_budget=800, num_epochs=40, **cosine)).progress.history]
    assert len(rates) == 40
    # Minibatch i of 40 starts when i / 40 is done: the rate is 0.1 * i / 20 up to i = 20.
    assert rates[10] == pytest.approx(0.05)
    assert max(rates) == rates[20] == pytest.approx(0.1)
    assert rates[-1] < 0.002


def test_the_schedule_by_hand() -> None:
    assert scheduled_lr(config(lr=0.5), 0.7) == 0.5
    cosine = config(schedule="cosine", lr=2.0, warmup_share=0.2)
    # It rises to 2 during the first fifth, is 2 * (0.01 + 0.99 / 2) half-way through the rest, and ends at 0.02.
    shares = [0, 0.05, 0.2, 0.6, 1]
    assert [scheduled_lr(cosine, share) for share in shares] == pytest.approx([0, 0.5, 2, 1.01, 0.02])
    assert scheduled_lr(config(schedule="cosine", lr=2.0), 0) == 2
