"""The scores of all models: those that are stored, and mixtures of them, whose weights are chosen on val."""

import math
from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.layout import Layout
from seqlm.models.info import mixture_info
from seqlm.models.mixture import mix
from seqlm.pipeline.evaluate.mixtures import best_mixture, choose_weights, collect_scores, make_mixtures, save_mixtures
from seqlm.pipeline.evaluate.tables import choices, diagnosed, headlines
from seqlm.pipeline.score.scores import Scores, save_scores
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


# Networks are sure of every second token, the n-gram model ``counts`` of the others.
STORED = [
    score(NGRAM, alternating(3.1, 0.2), DIAGNOSED), score(ngram("never"), ZERO + np.inf, DIAGNOSED),
    score(GOOD, alternating(0.1, 3.0), DIAGNOSED), score(WEAK, alternating(0.6, 3.5), DIAGNOSED, test=ZERO),
    score(DYNAMIC, alternating(0.1, 2.8), {"choices": {"dynamic_lr": 0.1, "dynamic_decay": 0.0}}),
]  # fmt: skip


def made(*scores: Scores) -> list[Scores]:
    """Return the mixtures of some networks and n-gram models."""
    ngrams, networks = ([each for each in scores if each.info.family == family] for family in ("ngram", "network"))
    return make_mixtures(ngrams, networks, TEXTS)


def members_of(*scores: Scores) -> list[tuple[str, ...]]:
    return [mixture.info.members for mixture in made(*scores)]


def test_weights_maximise_the_likelihood_of_mean_probabilities() -> None:
    # The mean of 1/2 and 1/8 is 5/16.
    assert mix([np.log([2.0]), np.log([8.0])], np.array([0.5, 0.5])) == pytest.approx([math.log(16 / 5)])
    # Three of four tokens are certain in the first model and impossible in the second, the fourth the other way round:
    # w^3 (1 - w) is largest at w = 3/4.
    first = np.array([0.0, 0.0, 0.0, np.inf])
    second = np.where(np.isinf(first), 0.0, np.inf)
    assert choose_weights([first, second]) == pytest.approx([0.75, 0.25])
    # In general, each member's share of the mixture is 1 on average at the maximum. Alike members take many steps.
    probs = np.random.default_rng(0).uniform(0.1, 0.9, (2, 200)) * [[1.2], [1]]
    weights = choose_weights(-np.log(probs))
    assert (probs / (weights @ probs)).mean(axis=1) == pytest.approx([1, 1], abs=1e-3)
    # A member that is certain of one token in 200 has a weight of 0.005, and is left out.
    common, rare = score(A, ending(0, np.inf)), score(B, ending(np.inf, 0))
    assert best_mixture([common, rare], TEXTS["char"]).metadata["weights"] == {"a": 1.0}
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
    members = [score(A, {"val": first, "test": second}), score(B, {"val": second, "test": first}), *others]
    mixture = best_mixture(members, TEXTS["char"])
    weights = mixture.metadata["weights"]
    assert weights["a"] > 0.7
    assert mixture.nll["test"] == pytest.approx(mix([second, first], np.array([weights["a"], weights["b"]])))


def test_members_are_chosen_on_val_and_not_on_test() -> None:
    """On val, ``chosen`` is the best network and ``helper`` helps it most; on test, the other ones."""
    chosen = score(network("chosen"), {"val": SURE, "test": SURE + 1})
    lucky, other_token = (
        score(network("lucky", token), {"val": SURE + 1, "test": SURE}) for token in ("char", "subword")
    )
    helper = score(ngram("helper"), {"val": 3.1 - SURE, "test": SURE + 3})
    lucky_helper = score(ngram("lucky partner"), {"val": 4.1 - SURE, "test": 3.1 - SURE})
    assert members_of(helper, lucky_helper, chosen, lucky) == [("chosen", "helper")]
    # The kind of token is that of the best network.
    assert members_of(helper, score(ngram("x", "subword"), 3.1 - SURE), other_token, chosen) == [("chosen", "helper")]


def test_the_partner_is_one_of_the_four_best_ngram_models_on_val() -> None:
    alone = score(network("network"), SURE)
    good = [score(ngram(f"good {index}"), SURE + 0.01 * index, test=SURE + 9) for index in range(4)]
    helper = score(ngram("helper"), 4.0 - SURE, test=3.1 - SURE)
    assert all("helper" not in members for members in members_of(*good, helper, alone))
    assert members_of(*good[1:], helper, alone) == [("network", "helper")]


def test_the_name_of_a_mixture_marks_its_dynamic_members_once() -> None:
    larger = network("b", train_chars=5000)
    static, dynamic = (mixture_info([A, NGRAM]), mixture_info([A.as_dynamic(), larger.as_dynamic(), NGRAM]))
    assert (static.name, static.dynamic, static.family, static.chosen_on_val) == ("a+counts", False, "mixture", True)
    assert (dynamic.name, dynamic.dynamic, dynamic.train_chars) == ("a+b+dynamic+counts", True, 5000)
    assert dynamic.members == ("a+dynamic", "b+dynamic", "counts")


def test_a_network_without_a_dynamic_score_stays_in_the_dynamic_mixture() -> None:
    """The best network has no dynamic score, another one has; each network is in a mixture at most once."""
    rng, means = np.random.default_rng(0), {A: 1, B: 1.2, B.as_dynamic(): 1.1, NGRAM: 1}
    mixtures = members_of(*(score(info, rng.exponential(mean, 200)) for info, mean in means.items()))
    assert {"a", "b+dynamic", "counts"} in map(set, mixtures)
    assert not any({"b", "b+dynamic"} <= set(members) for members in mixtures)
    # Without any, dynamic counts are mixed with a static network.
    dynamic = made(*STORED[:-1], score(RECOUNTED, alternating(3.0, 0.1)))[1].info
    assert (dynamic.name, dynamic.members, dynamic.dynamic) == ("counts+dynamic+good", ("good", "counts+dynamic"), True)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([], [("good", "counts"), ("good+dynamic", "counts")]),
        # The n-gram model is worse at almost every token: its weight on val is negligible.
        ([score(NGRAM, ending(3.5, 0.1)), score(GOOD, ending(0.3, 3.0)), score(DYNAMIC, ZERO + 0.2)], []),
        # The best network is sure of two tokens in three, the other one of the third, the n-gram model of none.
        (
            [score(GOOD, alternating(0.1, 0.1, 9)), score(WEAK, alternating(9, 9, 0.1)), score(NGRAM, ZERO + 5)],
            [("good", "weak"), ("good+dynamic", "weak")],
        ),
        # Dynamic counts are best.
        ([score(RECOUNTED, alternating(3.0, 0.1))], [("good", "counts"), ("good+dynamic", "counts+dynamic")]),
        # The n-gram model that is best alone is sure of the same tokens as the best network.
        (
            [score(ngram("alone"), alternating(0.1, 2.9)), score(ngram("helper"), alternating(3.0, 0.1))],
            [("good", "helper"), ("good+dynamic", "helper")],
        ),
    ],
)
def test_members_are_those_that_help(changed: list[Scores], expected: list[tuple[str, ...]]) -> None:
    assert members_of(*{each.name: each for each in [*STORED, *changed]}.values()) == expected


def test_stored_scores_come_before_mixtures_and_static_ones_before_dynamic_ones(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for folder in map(layout.scores_of_ngrams, KINDS):
        folder.mkdir(parents=True)
    for each in STORED:
        is_network, run = each.info.family == "network", each.name.removesuffix("+dynamic")
        folder = layout.scores_of_run(run) if is_network else layout.scores_of_ngrams(each.info.token)
        save_scores(folder / each.name, each)
    found = collect_scores(layout, ["good", "weak"], TEXTS)
    names = ["counts", "never", "good", "weak", "good+dynamic", "good+counts", "good+dynamic+counts"]
    assert [each.name for each in found] == names
    for kept in (found, found[:-1]):  # a mixture that is no longer made goes
        save_mixtures(layout.mixtures, kept)
    assert [path.stem for path in layout.mixtures.iterdir()] == ["good+counts"]
    # The best n-gram model is diagnosed, and the networks, the best first.
    assert [each.name for each in diagnosed(found)] == ["good", "counts", "weak"]
    # Each member is best at half of the tokens.
    weights = {f"weight of {member} in {each.name}": 0.5 for each in found[5:] for member in each.info.members}
    assert choices(found) == pytest.approx(
        {"dynamic_lr in good+dynamic": 0.1, "dynamic_decay in good+dynamic": 0.0} | weights, abs=0.03
    )


def test_each_group_has_the_figures_of_its_best_model_on_val() -> None:
    # A bit is ln 2 nats, and each token is a character.
    nats = {"best-ngram": 1.65, "best-network": 1.55, "best-dynamic": 1.45}
    assert headlines(STORED, [])["val"] == pytest.approx({name: value / np.log(2) for name, value in nats.items()})
    assert set(headlines(STORED[:-1], ["good"])["test"]) == {"best-ngram", "best-network", "good"}
    mixture = made(*STORED)[0]
    bits = {split: mixture.metrics[split]["bits_per_character"] for split in ("val", "test")}
    found = headlines([*STORED[:-1], mixture], [])
    assert {split: each["best-mixture"] for split, each in found.items()} == bits
