"""The scores of all models: those that are stored, and mixtures of them, whose weights are chosen on val."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import best_mixture, choose_weights, collect_scores, make_mixtures
from seqlm.evaluate.tables import choices, diagnosed, headlines
from seqlm.models.info import ModelInfo, describe_mixture
from seqlm.models.language_model import mix
from seqlm.score.scores import Scores, save_scores
from seqlm.vocab.corpus import SPLITS
from seqlm.vocab.kinds import KINDS

TEXTS = {kind: dict.fromkeys(SPLITS, scored_text(200)) for kind in KINDS}
DIAGNOSED = {"positions": [2.0]}
NGRAM, RECOUNTED = ngram("counts"), ngram("counts").as_dynamic()
GOOD, DYNAMIC, WEAK = network("good"), network("good").as_dynamic(), network("weak")
A, B, ZERO = network("a"), network("b"), np.zeros(200)
SURE = np.where(np.arange(200) < 100, 0.1, 3.0)
"""The surprisals of a model that is sure of the first half of the tokens; ``3.1 - SURE`` are those of its opposite."""


def alternating(*nll: float) -> np.ndarray:
    return np.resize(nll, 200)


def ending(nll: float, last: float) -> np.ndarray:
    return np.append(ZERO[1:] + nll, last)


def made(name: str, val: np.ndarray) -> Scores:
    return score(network(name), {"val": val, "test": np.roll(val, 7) ** 2})


def best(*members: Scores) -> Scores:
    return best_mixture(members, TEXTS["char"])


def weights_of(mixture: Scores) -> dict[str, float]:
    return dict(mixture.metadata["weights"])


def members_of(ngrams: list[Scores], networks: list[Scores]) -> list[tuple[str, ...]]:
    return [mixture.info.members for mixture in make_mixtures(ngrams, networks, TEXTS)]


def test_equal_weights_give_the_mean_of_the_probabilities() -> None:
    # The mean of 1/2 and 1/8 is 5/16.
    assert mix([np.log([2.0]), np.log([8.0])], np.array([0.5, 0.5])) == pytest.approx([math.log(16 / 5)])


def test_weights_maximise_the_likelihood() -> None:
    # Three of four tokens are certain in the first model and impossible in the second, the fourth the other way round:
    # w^3 (1 - w) is largest at w = 3/4.
    first = np.array([0.0, 0.0, 0.0, np.inf])
    second = np.where(np.isinf(first), 0.0, np.inf)
    assert choose_weights([first, second]) == pytest.approx([0.75, 0.25])
    # Tokens without probability under any member do not choose.
    nll = np.array([0.0, np.inf])
    assert choose_weights([nll, nll]) == pytest.approx([0.5, 0.5])
    assert choose_weights([nll[1:], nll[1:]]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("others", [[], [score(ngram("useless"), ZERO + 9)]])
def test_weights_are_chosen_on_val_and_not_on_test(others: list[Scores]) -> None:
    # The first model knows three quarters of val and a quarter of test, the second model the others. Without a useless
    # third one, the weights are chosen again.
    first = alternating(0.1, 0.1, 0.1, 3.0)
    second = 3.1 - first
    mixture = best(score(A, {"val": first, "test": second}), score(B, {"val": second, "test": first}), *others)
    weights = weights_of(mixture)
    assert weights["a"] > 0.7
    assert mixture.nll["test"] == pytest.approx(mix([second, first], np.array([weights["a"], weights["b"]])))


def test_networks_and_their_partner_are_chosen_on_val_and_not_on_test() -> None:
    """On val, ``chosen`` is the best network and ``helper`` helps it most; on test, the other ones."""
    networks = [
        score(network("chosen"), {"val": SURE, "test": SURE + 1}),
        score(network("lucky"), {"val": SURE + 1, "test": SURE}),
    ]
    ngrams = [
        score(ngram("helper"), {"val": 3.1 - SURE, "test": SURE + 3}),
        score(ngram("lucky partner"), {"val": 4.1 - SURE, "test": 3.1 - SURE}),
    ]
    assert members_of(ngrams, networks) == [("chosen", "helper")]


def test_the_kind_of_token_is_that_of_the_best_network_on_val() -> None:
    networks = [
        score(network("chosen"), {"val": SURE, "test": SURE + 1}),
        score(network("lucky", "subword"), {"val": SURE + 1, "test": SURE}),
    ]
    partners = [score(ngram(f"of {kind}s", kind), 3.1 - SURE) for kind in ("char", "subword")]
    assert members_of(partners, networks) == [("chosen", "of chars")]


def test_the_partner_is_one_of_the_four_best_ngram_models_on_val() -> None:
    networks = [score(network("network"), SURE)]
    good = [score(ngram(f"good {index}"), SURE + 0.01 * index, test=SURE + 9) for index in range(4)]
    helper = score(ngram("helper"), 4.0 - SURE, test=3.1 - SURE)
    assert all("helper" not in members for members in members_of([*good, helper], networks))
    assert members_of([*good[1:], helper], networks) == [("network", "helper")]


def test_members_with_a_negligible_weight_are_left_out() -> None:
    good = np.random.default_rng(0).exponential(1, 200)
    assert weights_of(best(made("worse", good + 1.0), made("good", good))) == {"good": 1.0}
    # The first model is certain of 199 tokens, the second of one: the best weights are 0.995 and 0.005.
    mixture = best(made("common", ending(0, np.inf)), made("rare", ending(np.inf, 0)))
    assert mixture.info.members == ("common",)


def test_the_name_of_a_mixture_marks_its_dynamic_members_once() -> None:
    larger = network("b", train_chars=5000)
    static, dynamic = describe_mixture([A, NGRAM]), describe_mixture([A.as_dynamic(), larger.as_dynamic(), NGRAM])
    assert (static.name, static.dynamic, static.family, static.chosen_on_val) == ("a+counts", False, "mixture", True)
    assert (dynamic.name, dynamic.dynamic, dynamic.train_chars) == ("a+b+dynamic+counts", True, 5000)
    assert dynamic.members == ("a+dynamic", "b+dynamic", "counts")


def test_a_network_without_a_dynamic_score_stays_in_the_dynamic_mixture() -> None:
    """The best network has no dynamic score, another one has; each network is in a mixture at most once."""
    rng = np.random.default_rng(0)
    means = {A: 1, B: 1.2, B.as_dynamic(): 1.1}
    networks = [score(info, rng.exponential(mean, 200)) for info, mean in means.items()]
    found = [set(members) for members in members_of([score(NGRAM, rng.exponential(1, 200))], networks)]
    assert {"a", "b+dynamic", "counts"} in found
    assert not any({"b", "b+dynamic"} <= members for members in found)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with the runs ``good``, which has a dynamic score, and ``weak``, and with two n-gram models.

    Networks are sure of every second token, the n-gram model ``counts`` of the others.
    """
    layout = Layout(tmp_path)
    for folder in map(layout.scores_of_ngrams, KINDS):
        folder.mkdir(parents=True)
    save(layout, score(GOOD, alternating(0.1, 3.0), DIAGNOSED))
    save(layout, score(WEAK, alternating(0.6, 3.5), DIAGNOSED))
    save(layout, score(DYNAMIC, alternating(0.1, 2.8), {"choices": {"dynamic_lr": 0.1}}))
    save(layout, score(NGRAM, alternating(3.1, 0.2), DIAGNOSED))
    save(layout, score(ngram("never"), ZERO + np.inf))
    return layout


def save(layout: Layout, *scores: Scores) -> None:
    for made in scores:
        is_network = made.info.family == "network"
        run = made.info.members[0] if made.info.dynamic else made.name
        folder = layout.scores_of_run(run) if is_network else layout.scores_of_ngrams(made.info.token)
        save_scores(folder / made.name, made)


def collect(layout: Layout) -> list[Scores]:
    return collect_scores(layout, ["good", "weak"], TEXTS)


def mixtures(layout: Layout) -> list[ModelInfo]:
    return [found.info for found in collect(layout) if found.info.family == "mixture"]


def test_stored_scores_come_first_and_dynamic_ones_last(layout: Layout) -> None:
    stored = ["counts", "never", "good", "weak", "good+dynamic"]
    assert [found.name for found in collect(layout)][:5] == stored
    assert [found.name for found in diagnosed(collect(layout))] == ["good", "counts", "weak"]  # best first


def test_the_best_network_is_mixed_with_an_ngram_model_static_and_dynamic(layout: Layout) -> None:
    assert [(info.name, info.members, info.dynamic) for info in mixtures(layout)] == [
        ("good+counts", ("good", "counts"), False),
        ("good+dynamic+counts", ("good+dynamic", "counts"), True),
    ]
    # Each is best at half of the tokens.
    assert choices(collect(layout)) == pytest.approx({
        "dynamic_lr in good+dynamic": 0.1,
        "weight of good in good+counts": 0.5, "weight of counts in good+counts": 0.5,
        "weight of good+dynamic in good+dynamic+counts": 0.5, "weight of counts in good+dynamic+counts": 0.5,
    }, abs=0.03)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # The n-gram model is worse at almost every token: its weight on val is negligible.
        ([score(NGRAM, ending(3.5, 0.1)), score(GOOD, ending(0.3, 3.0)), score(DYNAMIC, ZERO + 0.2)], []),
        # The best network is sure of two tokens in three, the other one of the third, the n-gram model of none.
        (
            [
                score(GOOD, alternating(0.1, 0.1, 9.0)),
                score(WEAK, alternating(9.0, 9.0, 0.1)),
                score(NGRAM, ZERO + 5.0),
            ],
            [("good", "weak"), ("good+dynamic", "weak")],
        ),
        # Dynamic counts are best.
        ([score(RECOUNTED, alternating(3.0, 0.1))], [("good", "counts"), ("good+dynamic", "counts+dynamic")]),
        # The n-gram model that is best alone is sure of the same tokens as the best network.
        (
            [score(ngram("alone"), alternating(0.1, 2.9)), score(ngram("helper"), alternating(3.0, 0.1))],
            [("good", "helper"), ("good+dynamic", "helper")],
        ),
        # Models over other tokens are not mixed in.
        ([score(ngram("words", "word"), ZERO + 0.1)], [("good", "counts"), ("good+dynamic", "counts")]),
    ],
)
def test_members_are_those_that_help(changed: list[Scores], expected: list[tuple[str, ...]], layout: Layout) -> None:
    save(layout, *changed)
    assert [info.members for info in mixtures(layout)] == expected


def test_without_a_dynamic_network_dynamic_counts_are_mixed_with_a_static_one(layout: Layout) -> None:
    shutil.rmtree(layout.scores_of_run("good") / "good+dynamic")
    save(layout, score(RECOUNTED, alternating(3.0, 0.1)))
    assert [(info.name, info.members, info.dynamic) for info in mixtures(layout)] == [
        ("good+counts", ("good", "counts"), False),
        ("counts+dynamic+good", ("good", "counts+dynamic"), True),
    ]


def test_each_group_has_the_figures_of_its_best_model_on_val(layout: Layout) -> None:
    found = [each for each in collect(layout) if each.info.family != "mixture"]
    # A bit is ln 2 nats, and each token is a character.
    nats = {"best-ngram": 1.65, "best-network": 1.55, "best-mixture": 1.45}
    assert headlines(found, [])["val"] == pytest.approx({name: value / np.log(2) for name, value in nats.items()})
    static = [one for one in found if not one.info.dynamic]
    assert set(headlines(static, ["good"])["test"]) == {"best-ngram", "best-network", "good"}
    mixture = next(one for one in collect(layout) if one.name == "good+counts")
    bits = {split: mixture.metrics[split]["bits_per_character"] for split in ("val", "test")}
    assert {split: each["best-mixture"] for split, each in headlines([*static, mixture], []).items()} == bits
