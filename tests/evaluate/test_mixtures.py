"""Mixtures of models."""

import math

import numpy as np
import pytest

from seqlm.evaluate.mixtures import best_mixture, choose_weights, mix, mixture_name
from seqlm.score.store import Score


def score(name: str, val: np.ndarray) -> Score:
    return Score(name, "char", {"val": val, "test": val[::-1]})


def test_half_of_each_is_the_mean_of_the_probabilities() -> None:
    # Half of p = 1/2 and half of p = 1/8 is 5/16.
    assert mix([np.log([2.0]), np.log([8.0])], np.array([0.5, 0.5])) == pytest.approx([math.log(16 / 5)])


def test_weights_are_those_of_the_highest_likelihood() -> None:
    # Three of four tokens are sure in the first model and impossible in the second, the fourth the other way round:
    # w^3 (1 - w) is highest at w = 3/4.
    first = np.array([0.0, 0.0, 0.0, np.inf])
    second = np.where(np.isinf(first), 0.0, np.inf)
    assert choose_weights([first, second]) == pytest.approx([0.75, 0.25])


def test_a_mixture_is_no_worse_on_val_than_any_member() -> None:
    rng = np.random.default_rng(0)
    members = [score(name, rng.exponential(1, 200)) for name in "abc"]
    mixed, weights = best_mixture(members)
    assert mixed.name == "a+b+c"
    assert sum(weights.values()) == pytest.approx(1)
    assert mixed.nats["val"].sum() < min(member.nats["val"].sum() for member in members)
    # Its weights are no worse than any others.
    for other in rng.dirichlet([1, 1, 1], 50):
        assert mixed.nats["val"].sum() <= mix([member.nats["val"] for member in members], other).sum() + 1e-6


def test_a_member_that_adds_nothing_is_left_out_unless_it_is_kept() -> None:
    rng = np.random.default_rng(0)
    good = rng.exponential(1, 200)
    members = [score("good", good), score("worse", good + 1.0)]
    mixed, weights = best_mixture(members)
    assert (mixed.name, weights) == ("good", {"good": 1.0})
    assert best_mixture(members, keep=2)[0].name == "good+worse"


def test_tokens_that_no_member_gives_a_chance_choose_nothing() -> None:
    nats = np.array([0.0, np.inf])
    assert choose_weights([nats, nats]) == pytest.approx([0.5, 0.5])
    assert choose_weights([nats[1:], nats[1:]]) == pytest.approx([0.5, 0.5])


def test_adapting_members_bear_one_mark() -> None:
    assert mixture_name(["a", "counting"]) == "a+counting"
    assert mixture_name(["a+dynamic", "b+dynamic", "counting"]) == "a+b+dynamic+counting"
