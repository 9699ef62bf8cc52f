"""Choosing the next token from a distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.models.language_model import SamplingConfig

# Token 0, <unk>, is likely but never chosen.
PROBS = np.array([[0.5, 0.3, 0.15, 0.05]])
LOW = [1e-3, 1e-30, 1e-40, 1e-320, 5e-324]


def pick(sampling: SamplingConfig, draws: int = 2000) -> np.ndarray:
    picked = sampling.pick(np.repeat(PROBS, draws, 0), np.random.default_rng(0))
    return np.bincount(picked, minlength=4) / draws


def test_greedy_takes_the_most_likely_token_but_never_unk() -> None:
    assert pick(SamplingConfig()).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature_raises_probabilities_to_a_power(temperature: float) -> None:
    # Exercise 8.5-3: q is proportional to p to the power 1 / temperature.
    q = PROBS[0, 1:] ** (1 / temperature)
    assert pick(SamplingConfig(temperature), 20_000)[1:] == pytest.approx(q / q.sum(), abs=0.015)


def test_top_k_and_nucleus_leave_tokens_out() -> None:
    assert (pick(SamplingConfig(1.0, top_k=2)) > 0).tolist() == [False, True, True, False]
    # Without <unk>, p is 0.6, 0.3, 0.1: the first holds less than 0.7, the first two hold 0.9.
    assert (pick(SamplingConfig(1.0, top_p=0.7)) > 0).tolist() == [False, True, True, False]
    assert (pick(SamplingConfig(1.0, top_p=0.5)) > 0).tolist() == [False, True, False, False]


@pytest.mark.parametrize("temperature", LOW)
@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 0.5}])
def test_a_very_low_temperature_is_as_greedy_as_zero(temperature: float, options: dict[str, float]) -> None:
    probs = np.array([[0.5, 0.1, 0.25, 0.15], [1.0, 1e-300, 1e-310, 0.0]])
    chosen = SamplingConfig(temperature, **options).pick(probs, np.random.default_rng(0))  # type: ignore[arg-type]
    assert chosen.tolist() == [2, 1]


def test_equally_likely_tokens_stay_equally_likely_at_any_temperature() -> None:
    probs = np.tile([0.0, 0.4, 0.4, 0.2], (1000, 1))
    drawn = SamplingConfig(1e-40).pick(probs, np.random.default_rng(0))
    assert set(drawn.tolist()) == {1, 2}
    assert 400 < int((drawn == 1).sum()) < 600


@given(
    st.floats(0, 100),
    st.lists(st.floats(0, 1), min_size=2, max_size=5).filter(lambda probs: any(probs[1:])),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 1e-9, 0.5, 1.0]),
)
def test_a_possible_token_can_be_drawn_at_any_temperature(
    temperature: float, probs: list[float], top_k: int | None, top_p: float | None
) -> None:
    (chosen,) = SamplingConfig(temperature, top_k, top_p).pick(np.array([probs]), np.random.default_rng(0)).tolist()
    assert chosen >= 1
    assert probs[chosen] > 0
