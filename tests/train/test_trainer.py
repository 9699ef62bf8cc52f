"""The trainer in the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqlm.core.errors import DivergenceError, ParamsError
from seqlm.rnn.scoring import stream_nll
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.ranks import Ranks
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from small_runs import config

TEXT = np.random.default_rng(0).integers(1, 6, 600)


def trainer(run: RunConfig, train: np.ndarray = TEXT, val: np.ndarray = TEXT[:50]) -> Trainer:
    return Trainer(run, 6, train, val, torch.device("cpu"))


def train(run: RunConfig) -> Trainer:
    made = trainer(run)
    made.run(lambda _: None)
    return made


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("model", ["scratch", "rnn", "gru", "lstm"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_every_model_learns_a_text_that_repeats(model: str, sampling: str) -> None:
    text = np.tile([1, 2, 3, 4, 5], 120)
    run = config(model=model, sampling=sampling, num_hiddens=16, num_epochs=25, lr=2.0)
    made = trainer(run, text, text[:50])
    # Five equally frequent tokens have perplexity 5 for who knows nothing, 1 for who knows the order.
    assert np.exp(stream_nll(made.network, text[:50]).mean()) > 4
    made.run(lambda _: None)
    assert made.progress.history[-1].val_perplexity < 1.3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"truncation": "randomized"},
        {"model": "lstm", "dropout": 0.3, "optimizer": "adamw", "lr": 0.01, "schedule": "cosine", "keep": "best"},
    ],
    ids=["scratch", "randomized truncation", "lstm"],
)
def test_a_training_that_goes_on_ends_like_one_that_never_stopped(changes: dict[str, Any], tmp_path: Path) -> None:
    run = config(**changes)
    whole = train(run)
    checkpoint = Checkpoint(tmp_path, "x", "key")

    class Stop(Exception):
        pass

    def stop_after_two(made: Trainer) -> None:
        if made.progress.num_epochs == 2:
            checkpoint.save(*made.state())
            raise Stop

    with pytest.raises(Stop):
        trainer(run).run(stop_after_two)
    again = trainer(run)
    saved = checkpoint.load()
    assert saved is not None
    again.restore(*saved)
    again.run(lambda _: None)
    assert again.progress == whole.progress
    assert equal(again.chosen_weights()[1], whole.chosen_weights()[1])


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        return train(config(seed=seed, model="lstm", dropout=0.2)).network.weights()

    assert equal(weights(0), weights(0))
    assert not equal(weights(0), weights(1))


def test_best_weights_are_those_of_the_best_look_at_val() -> None:
    run = config(keep="best", num_epochs=30, lr=5.0, patience=3)
    made = train(run)
    looks = [row.val_perplexity for row in made.progress.history]
    epoch, weights = made.chosen_weights()
    assert looks[epoch - 1] == min(looks)
    assert len(looks) == min(epoch + 3, 30)
    assert epoch == len(looks) or not equal(weights, made.network.weights())


def test_carrying_the_state_and_dropping_it_are_two_things() -> None:
    carried, dropped = train(config(carry_state=True)), train(config(carry_state=False))
    assert not equal(carried.network.weights(), dropped.network.weights())


def test_divergence_stops_the_run_and_says_what_to_try() -> None:
    with pytest.raises(DivergenceError, match=r"run x: the loss is not finite in epoch \d+: set grad_clip to 1"):
        train(config(activation="relu", lr=1e6, num_steps=40, grad_clip=None, num_epochs=50))


def test_a_text_too_short_for_a_minibatch_gets_smaller_ones() -> None:
    assert trainer(config(batch_size=500)).plan.batch_size == 119


def test_full_truncation_spans_each_lane_with_one_window() -> None:
    made = train(config(truncation="full", num_epochs=1))
    assert made.plan.num_steps == 600 // 5


def test_lanes_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(ParamsError, match="batch_size = 4: must be a multiple of the 3 processes"):
        Trainer(config(), 6, TEXT, TEXT[:50], torch.device("cpu"), Ranks(0, 3))
