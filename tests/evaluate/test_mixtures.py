"""Mixtures of models."""

import math
from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.errors import DataError
from seqlm.evaluate.mixtures import (
    best_mixture,
    choose_weights,
    describe_mixture,
    load_mixtures,
    make_mixtures,
    mix,
    save_mixtures,
    val_bits,
)
from seqlm.score.store import Score
from seqlm.vocab.corpus import SPLITS

NATS = np.random.default_rng(1).exponential(1, 200)
TEXTS = dict.fromkeys(SPLITS, scored_text(200))


def made(name: str, val: np.ndarray) -> Score:
    return score(network(name), {"val": val, "test": np.roll(val, 7) ** 2})


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


def sure(share: float) -> np.ndarray:
    """Return the surprisals of a model that is sure of the first ``share`` of 200 tokens, and not of the others."""
    return np.where(np.arange(200) < share * 200, 0.1, 3.0)


def test_weights_are_chosen_on_val_and_not_on_test() -> None:
    # The first model knows three quarters of val and a quarter of test, the second model the others.
    first, second = sure(0.75), 3.1 - sure(0.75)
    members = [score(network("a"), {"val": first, "test": second}), score(network("b"), {"val": second, "test": first})]
    weights = weights_of(best_mixture(members, TEXTS))
    assert weights["a"] > 0.7
    assert best_mixture(members, TEXTS).nats["test"] == pytest.approx(
        mix([second, first], np.array([weights["a"], weights["b"]]))
    )


def test_models_are_ranked_by_val_whatever_test_says() -> None:
    good, bad = np.full(200, 0.5), np.full(200, 2.0)
    assert val_bits(score(network("a"), bad, val=good)) < val_bits(score(network("b"), good, val=bad))
    assert val_bits(score(network("a"), good, val=np.full(200, np.inf))) == math.inf


def test_networks_and_their_partner_are_chosen_on_val_and_not_on_test() -> None:
    """On val, ``chosen`` is the best network and ``helper`` helps it most; on test, the other ones."""
    half, other_half = sure(0.5), 3.1 - sure(0.5)
    networks = [
        score(network("chosen"), {"val": half, "test": half + 1}),
        score(network("lucky"), {"val": half + 1, "test": half}),
    ]
    ngrams = [
        score(ngram("helper"), {"val": other_half, "test": half + 3}),
        score(ngram("lucky partner"), {"val": other_half + 1, "test": other_half}),
    ]
    members = [mixture.info.members for mixture in make_mixtures(ngrams, networks, {"char": TEXTS})]
    assert members == [("chosen", "helper")]


def test_the_partner_is_one_of_the_best_ngram_models_on_val() -> None:
    """Only the four best on val are tried, so the fifth is not, although it would help most."""
    half, other_half = sure(0.5), 3.1 - sure(0.5)
    networks = [score(network("network"), half)]
    good = [score(ngram(f"good {index}"), half + 0.01 * index, test=half + 9) for index in range(4)]
    helper = score(ngram("helper"), other_half + 0.9, test=other_half)
    pairs = [mixture.info.members for mixture in make_mixtures([*good, helper], networks, {"char": TEXTS})]
    assert all("helper" not in members for members in pairs)
    pairs = [mixture.info.members for mixture in make_mixtures([*good[1:], helper], networks, {"char": TEXTS})]
    assert pairs == [("network", "helper")]


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
    assert static.chosen_on_val
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


def test_stored_mixtures_replace_those_before(tmp_path: Path) -> None:
    a, b = made("a", sure(0.75)), made("b", 3.1 - sure(0.75))
    mixture = best_mixture([a, b], TEXTS)
    save_mixtures(tmp_path / "mixtures", [a, mixture, b])
    (stored,) = load_mixtures(tmp_path / "mixtures")
    assert stored.info == mixture.info
    assert stored.weights == weights_of(mixture)
    other = best_mixture([b, made("c", sure(0.75))], TEXTS)
    save_mixtures(tmp_path / "mixtures", [other])
    assert [found.info.name for found in load_mixtures(tmp_path / "mixtures")] == ["b+c"]
    save_mixtures(tmp_path / "mixtures", [a])
    assert load_mixtures(tmp_path / "mixtures") == load_mixtures(tmp_path / "none") == []


def test_a_changed_mixture_is_refused(tmp_path: Path) -> None:
    save_mixtures(tmp_path, [best_mixture([made("a", sure(0.75)), made("b", 3.1 - sure(0.75))], TEXTS)])
    path = tmp_path / "a+b.json"
    path.write_text(path.read_text().replace('"order": null', '"order": 3'))
    with pytest.raises(DataError, match="does not match its SHA-256: run the evaluate stage again"):
        load_mixtures(tmp_path)
