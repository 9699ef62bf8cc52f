"""How long a training is: in epochs, tokens or operations; and minibatches that a short text gives."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.configure.runs import resolve_runs
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.settings import read_params
from seqlm.train.console import describe_plan
from seqlm.train.minibatches import require_length
from seqlm.train.plan import Plan, largest_that_fit
from seqlm.train.ranks import Ranks
from seqlm.train.trainer import Trainer
from small_training import TEXT, config, equal, trained, trainer
from smoke import ROOT


def test_a_budget_that_is_not_reached_changes_nothing() -> None:
    # 200 tokens give (200 - 1) // 20 = 9 minibatches of 4 x 5, 180 tokens an epoch, 540 in three.
    free, bounded = trained(config()), trained(config(max_trained_tokens=540))
    assert not bounded.plan.is_bounded
    assert bounded.progress == free.progress
    assert equal(bounded.network.weights(), free.network.weights())
    assert [leg.epoch for leg in free.progress.history] == [1, 2, 3]
    assert all(isinstance(leg.epoch, int) for leg in free.progress.history)


def test_a_budget_ends_a_training_in_equal_legs() -> None:
    # 139 tokens are 6 minibatches of 20; three legs of 2; 2 of an epoch's 9 are 0.222 epochs.
    made = trained(config(max_trained_tokens=139))
    assert [leg.tokens for leg in made.progress.history] == [40, 80, 120]
    assert [leg.epoch for leg in made.progress.history] == [2 / 9, 4 / 9, 6 / 9]
    assert all(leg.val_perplexity is not None for leg in made.progress.history)
    assert made.tokens_trained == made.plan.tokens_to_train == 120


def test_legs_go_over_the_ends_of_epochs() -> None:
    # 500 tokens are 25 minibatches, of which an epoch of this text has 9, or 8 where its offset is large.
    made = trained(config(max_trained_tokens=500))
    assert [leg.tokens for leg in made.progress.history] == [160, 320, 500]
    assert made.progress.num_epochs in (2, 3)


def test_looks_and_patience_count_legs() -> None:
    made = trained(config(max_trained_tokens=400, num_epochs=10, eval_every=3, keep="best"))
    looks = [leg.val_perplexity is not None for leg in made.progress.history]
    assert looks == [False, False, True] * 3 + [True]
    stopped = trained(config(max_trained_tokens=400, num_epochs=10, patience=1, lr=1e-9, grad_clip=1e-9))
    # The learning rate is so small that no weight changes: the second look is not better than the first.
    assert len(stopped.progress.history) == 2


def test_the_schedule_spans_what_is_trained() -> None:
    """Half the training is warm-up: the rate is highest in its midst and falls to a hundredth at its end."""
    made = trained(
        config(max_trained_tokens=800, num_epochs=40, schedule="cosine", warmup_share=0.5, lr=0.1, optimizer="adamw")
    )
    rates = [leg.lr for leg in made.progress.history]
    assert len(rates) == 40
    # Minibatch i of 40 begins when i / 40 is done: the rate is 0.1 * i / 20 up to i = 20.
    assert rates[10] == pytest.approx(0.05)
    assert max(rates) == rates[20] == pytest.approx(0.1)
    assert rates[-1] < 0.002


def test_a_budget_of_less_than_a_minibatch_is_one() -> None:
    made = trained(config(max_trained_tokens=1))
    assert [leg.tokens for leg in made.progress.history] == [20]


def test_a_text_too_short_gets_fewer_lanes_and_then_fewer_steps() -> None:
    assert largest_that_fit(25, 4, 5) == (4, 5)  # 5 * (4 + 1) tokens are just enough
    assert largest_that_fit(24, 4, 5) == (3, 5)
    assert largest_that_fit(10, 4, 5) == (1, 5)
    assert largest_that_fit(9, 4, 5) == (1, 4)
    assert largest_that_fit(2, 4, 5) == (1, 1)
    assert largest_that_fit(24, 4, 5, 2) == (2, 5)  # lanes that two processes share out evenly
    assert largest_that_fit(14, 4, 5, 2) == (2, 4)
    with pytest.raises(DataError, match="1 tokens to train on: bring a longer text"):
        largest_that_fit(1, 4, 5)


@given(st.integers(2, 500), st.integers(1, 40), st.integers(1, 40), st.integers(1, 4))
def test_what_is_shrunk_fits_and_is_shared_out(num_tokens: int, share: int, num_steps: int, processes: int) -> None:
    if num_tokens <= processes:
        return
    lanes, steps = largest_that_fit(num_tokens, share * processes, num_steps, processes)
    require_length(num_tokens, lanes, steps)
    assert lanes % processes == 0
    assert 1 <= lanes <= share * processes
    assert 1 <= steps <= num_steps
    if steps == num_steps and lanes < share * processes:
        with pytest.raises(DataError):
            require_length(num_tokens, lanes + processes, steps)


@pytest.mark.parametrize("truncation", ["regular", "full"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
@pytest.mark.parametrize("num_tokens", [2, 9, 24])
def test_short_texts_are_trained_on(num_tokens: int, sampling: str, truncation: str) -> None:
    made = trained(config(batch_size=30, sampling=sampling, truncation=truncation), TEXT[:num_tokens])
    assert made.plan.batch_reduced
    assert len(made.progress.history) == 3


def test_a_text_long_enough_is_not_shrunk() -> None:
    assert not trainer(config()).plan.batch_reduced
    assert not trainer(config(truncation="full")).plan.batch_reduced


def test_lanes_that_cannot_be_shared_out_are_still_refused() -> None:
    with pytest.raises(ParamsError, match="batch_size = 4: must be a multiple of the 3 processes"):
        Trainer(config(), 6, TEXT, TEXT[:50], trainer(config()).device, Ranks(0, 3))


def test_the_default_budget_changes_nothing_on_the_book() -> None:
    # 136,503 characters of train, in minibatches of 32 x 32, for 20 epochs: 133 * 1,024 * 20 are 2.7 million.
    lstm = config(batch_size=32, num_steps=32, num_epochs=20, max_trained_tokens=10_000_000)
    assert Plan.of(lstm, 136_503, 865_052).tokens_to_train == 133 * 1024 * 20
    # 40 million characters are one epoch in a quarter: 9,765 minibatches of 1,024 are 9,999,360 tokens.
    plan = Plan.of(lstm, 40_000_000, 865_052)
    assert (plan.is_bounded, plan.num_legs, plan.tokens_to_train) == (True, 20, 9_999_360)
    assert plan.epochs_to_train == pytest.approx(0.25, rel=1e-3)


def test_floating_point_operations_bound_what_a_large_vocabulary_costs() -> None:
    """Six for each parameter and token: 6 * 100 * 510 = 306,000 are 25 minibatches of 20 tokens, of 27 in 3 epochs."""
    free, unreached, reached = (
        Plan.of(config(max_flops=flops), 200, 100) for flops in (None, 6 * 100 * 540, 6 * 100 * 510)
    )
    assert free == unreached
    assert (reached.bound, reached.tokens_to_train) == ("max_flops", 500)
    both = Plan.of(config(max_flops=6 * 100 * 510, max_trained_tokens=200), 200, 100)
    assert (both.bound, both.tokens_to_train) == ("max_trained_tokens", 200)
    (line, *_) = describe_plan(trainer(config(max_flops=1000)))
    assert line.endswith("where max_flops ends it")


def test_no_run_of_the_book_reaches_its_bounds_on_the_book() -> None:
    """The largest of its vocabularies in characters has 28 tokens, and train 136,503."""
    for run in resolve_runs(read_params(ROOT / "params.yaml"), source="").values():
        text = np.resize(np.arange(28), 136_503)
        assert run.max_flops is not None
        assert not Trainer(run, 28, text, text[:100], torch.device("cpu")).plan.is_bounded


def test_a_bounded_training_goes_through_the_text_as_any_other() -> None:
    """Epoch by epoch and minibatch by minibatch, as one without a bound: its weights are the same until it ends."""
    seen: dict[str, list[float]] = {}
    for name, changes in {"free": {}, "bounded": {"max_trained_tokens": 320}}.items():
        norms: list[float] = []
        made = trainer(config(**changes))
        made.run(lambda now, norms=norms: norms.append(float(now.network.weights()["W_hh"].norm())))
        seen[name] = list(dict.fromkeys(norms))
    assert len(seen["bounded"]) == 16
    assert np.array_equal(seen["bounded"], seen["free"][:16])
