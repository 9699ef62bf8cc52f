"""Mixtures of models."""

import math

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.evaluate.mixtures import best_mixture, choose_weights, describe_mixture, make_mixtures, mix
from seqlm.score.store import Score
from seqlm.vocab.corpus import SPLITS

NATS = np.random.default_rng(1).exponential(1, 200)
TEXTS = dict.fromkeys(SPLITS, scored_text(200))


def made(name: str, val: np.ndarray) -> Score:
    return score(network(name), {"val": val, "test": val[::-1]})


def weights_of(mixture: Score) -> dict[str, float]:
    return {what.removeprefix("weight of "): weight for what, weight in mixture.metadata["choices"].items()}


def test_equal_weights_give_the_mean_of_the_probabilities() -> None:
    # The mean of 1/2 and 1/8 is 5/16.
    assert mix([np.log([2.0]), np.log([8.0])], np.array([0.5, 0.5])) == pytest.approx([math.log(16 / 5)])


def test_weights_maximise_the_likelihood() -> None:
    # Three of four tokens are certain in the first model and impossible in the second, the fourth the other way round:
    # w^3 (1 - w) is largest at w = 3/4.
    first = np.array([0.0, 0.0, 0.0, np.inf])
    second = np.where(np.isinf(first), 0.0, np.inf)
    assert choose_weights([first, second]) == pytest.approx([0.75, 0.25])


def test_a_mixture_is_better_on_val_than_its_members_and_than_other_weights() -> None:
    rng = np.random.default_rng(0)
    members = [made(name, rng.exponential(1, 200)) for name in "abc"]
    mixture = best_mixture(members, TEXTS)
    assert mixture.info.members == ("a", "b", "c")
    assert sum(weights_of(mixture).values()) == pytest.approx(1)
    assert mixture.nats["val"].sum() < min(member.nats["val"].sum() for member in members)
    for weights in rng.dirichlet([1, 1, 1], 50):
        other = mix([member.nats["val"] for member in members], weights)
        assert mixture.nats["val"].sum() <= other.sum() + 1e-6


def test_members_with_a_negligible_weight_are_left_out() -> None:
    good = np.random.default_rng(0).exponential(1, 200)
    assert weights_of(best_mixture([made("worse", good + 1.0), made("good", good)], TEXTS)) == {"good": 1.0}
    # The first model is certain of 199 tokens, the second of one: the best weights are 0.995 and 0.005.
    rare = np.where(np.arange(200) == 7, np.inf, 0.0)
    mixture = best_mixture([made("common", rare), made("rare", np.where(np.isinf(rare), 0.0, np.inf))], TEXTS)
    assert mixture.info.members == ("common",)


def test_tokens_without_probability_under_any_member_do_not_choose_the_weights() -> None:
    nats = np.array([0.0, np.inf])
    assert choose_weights([nats, nats]) == pytest.approx([0.5, 0.5])
    assert choose_weights([nats[1:], nats[1:]]) == pytest.approx([0.5, 0.5])


def test_the_name_of_a_mixture_marks_its_dynamic_members_once() -> None:
    a, b, counts = network("a"), network("b", train_chars=5000), ngram("counts")
    static = describe_mixture([a, counts])
    assert (static.name, static.dynamic, static.family) == ("a+counts", False, "mixture")
    dynamic = describe_mixture([a.as_dynamic(), b.as_dynamic(), counts])
    assert (dynamic.name, dynamic.dynamic) == ("a+b+dynamic+counts", True)
    assert dynamic.members == ("a+dynamic", "b+dynamic", "counts")
    assert dynamic.train_chars == 5000


def test_a_network_without_a_dynamic_score_stays_in_the_dynamic_mixture() -> None:
    """The best network has no dynamic score, another one has; each network is in a mixture at most once."""
    rng = np.random.default_rng(0)
    best, other, counts = network("best"), network("other"), ngram("counts")
    networks = [
        score(best, rng.exponential(1, 200)),
        score(other, rng.exponential(1.2, 200)),
        score(other.as_dynamic(), rng.exponential(1.1, 200)),
    ]
    found = [set(m.info.members) for m in make_mixtures([score(counts, NATS)], networks, {"char": TEXTS})]
    assert {"best", "other+dynamic", "counts"} in found
    assert not any({"other", "other+dynamic"} <= members for members in found)
