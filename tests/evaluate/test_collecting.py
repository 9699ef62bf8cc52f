"""The scores of all models: those that are stored, and mixtures of them."""

from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import collect_scores
from seqlm.evaluate.tables import choices, diagnosed, headlines
from seqlm.score.store import ModelInfo, Score, headline, save_score
from seqlm.vocab.corpus import SPLITS
from seqlm.vocab.kinds import KINDS

TEXTS = {kind: dict.fromkeys(SPLITS, scored_text(100)) for kind in KINDS}
DIAGNOSED = {"positions": [2.0], "calibration": [(0.5, 0.5, 1)]}
NGRAM, RECOUNTED = ngram("counts"), ngram("counts").as_dynamic()
GOOD, DYNAMIC, WEAK = network("good"), network("good").as_dynamic(), network("weak")


def constant(nats: float) -> np.ndarray:
    return np.full(100, nats)


def alternating(*nats: float) -> np.ndarray:
    return np.resize(nats, 100)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with the runs ``good``, which has a dynamic score, and ``weak``, and with two n-gram models.

    Networks are sure of every second token, the n-gram model ``counts`` of the others.
    """
    layout = Layout(tmp_path)
    for folder in (*map(layout.scores_of_ngrams, KINDS), layout.scores_word_to_char):
        folder.mkdir(parents=True)
    save(layout, score(GOOD, alternating(0.1, 3.0), DIAGNOSED))
    save(layout, score(WEAK, alternating(0.6, 3.5), DIAGNOSED))
    save(layout, score(DYNAMIC, alternating(0.1, 2.8), {"choices": {"dynamic_lr": 0.1}}))
    save(layout, score(NGRAM, alternating(3.1, 0.2), DIAGNOSED))
    save(layout, score(ngram("never"), constant(np.inf)))
    return layout


def save(layout: Layout, made: Score) -> None:
    is_network = made.info.family == "network"
    run = made.info.members[0] if made.info.dynamic else made.name
    folder = layout.scores_of_run(run) if is_network else layout.scores_of_ngrams(made.info.token)
    save_score(folder / made.name, made)


def collect(layout: Layout, *, mixtures: bool = True) -> dict[str, Score]:
    return {found.name: found for found in collect_scores(layout, ["good", "weak"], TEXTS, mixtures)}


def mixtures(layout: Layout) -> list[ModelInfo]:
    return [found.info for found in collect(layout).values() if found.info.family == "mixture"]


def members(layout: Layout) -> list[tuple[str, ...]]:
    return [info.members for info in mixtures(layout)]


def test_stored_scores_come_first_and_dynamic_ones_last(layout: Layout) -> None:
    stored = ["counts", "never", "good", "weak", "good+dynamic"]
    assert list(collect(layout, mixtures=False)) == stored
    assert list(collect(layout))[:5] == stored


def test_the_best_network_is_mixed_with_an_ngram_model_static_and_dynamic(layout: Layout) -> None:
    static, dynamic = mixtures(layout)
    assert (static.name, static.members, static.dynamic) == ("good+counts", ("good", "counts"), False)
    assert (dynamic.name, dynamic.members, dynamic.dynamic) == (
        "good+dynamic+counts", ("good+dynamic", "counts"), True
    )  # fmt: skip
    # Each is best at half of the tokens.
    assert choices(list(collect(layout).values())) == pytest.approx({
        "dynamic_lr in good+dynamic": 0.1,
        "weight of good in good+counts": 0.5, "weight of counts in good+counts": 0.5,
        "weight of good+dynamic in good+dynamic+counts": 0.5, "weight of counts in good+dynamic+counts": 0.5,
    }, abs=0.03)  # fmt: skip


def test_a_model_with_a_negligible_weight_makes_no_mixture(layout: Layout) -> None:
    # The n-gram model is worse at almost every token: its weight on val is about a hundredth.
    save(layout, score(NGRAM, np.append(constant(3.5)[1:], 0.1)))
    save(layout, score(GOOD, np.append(constant(0.3)[1:], 3.0)))
    save(layout, score(DYNAMIC, constant(0.2)))
    assert mixtures(layout) == []


def test_other_networks_are_mixed_in_if_they_help(layout: Layout) -> None:
    # The best network is sure of two tokens in three, the other one of the third, the n-gram model of none.
    save(layout, score(GOOD, alternating(0.1, 0.1, 9.0)))
    save(layout, score(WEAK, alternating(9.0, 9.0, 0.1)))
    save(layout, score(NGRAM, constant(5.0)))
    assert members(layout)[:2] == [("good", "counts"), ("good", "weak")]


def test_a_dynamic_network_is_mixed_with_dynamic_counts_if_they_are_best(layout: Layout) -> None:
    save(layout, score(RECOUNTED, alternating(3.0, 0.1)))
    assert members(layout) == [("good", "counts"), ("good+dynamic", "counts+dynamic")]


def test_without_a_dynamic_network_dynamic_counts_are_mixed_with_a_static_one(layout: Layout) -> None:
    for path in (layout.scores_of_run("good") / "good+dynamic").iterdir():
        path.unlink()
    (layout.scores_of_run("good") / "good+dynamic").rmdir()
    save(layout, score(RECOUNTED, alternating(3.0, 0.1)))
    static, dynamic = mixtures(layout)
    assert (static.name, static.dynamic) == ("good+counts", False)
    assert (dynamic.name, dynamic.members, dynamic.dynamic) == (
        "counts+dynamic+good", ("good", "counts+dynamic"), True
    )  # fmt: skip


def test_the_partner_is_the_ngram_model_that_helps_most(layout: Layout) -> None:
    # The n-gram model that is best alone is sure of the same tokens as the best network.
    save(layout, score(ngram("alone"), alternating(0.1, 2.9)))
    save(layout, score(ngram("helper"), alternating(3.0, 0.1)))
    assert ("good", "helper") in members(layout)


def test_models_of_other_tokens_are_not_mixed(layout: Layout) -> None:
    save(layout, score(ngram("words", "word"), constant(0.1)))
    assert {name for names in members(layout) for name in names} == {"good", "counts", "good+dynamic"}


def test_each_group_has_the_figures_of_its_best_model_on_val(layout: Layout) -> None:
    found = list(collect(layout, mixtures=False).values())
    figures = headlines(found)
    # exp of the mean surprisal; a bit is ln 2 nats, and each of the 100 tokens is a character.
    assert figures["network"]["val_perplexity"] == pytest.approx(np.exp(1.55))
    assert figures["network"]["val_bits"] == pytest.approx(1.55 / np.log(2))
    assert figures["ngram"]["test_perplexity"] == pytest.approx(np.exp(1.65))
    assert figures["combined"]["test_perplexity"] == pytest.approx(np.exp(1.45))
    static = [one for one in found if not one.info.dynamic]
    assert headlines(static)["combined"] == {}
    mixture = next(one for one in collect(layout).values() if one.info.family == "mixture" and not one.info.dynamic)
    assert headlines([*static, mixture])["combined"] == headline(mixture.metrics)


def test_diagnosed_models_come_best_first(layout: Layout) -> None:
    assert [found.name for found in diagnosed(list(collect(layout).values()))] == ["good", "counts", "weak"]


@pytest.mark.parametrize("split", SPLITS)
def test_scores_of_another_text_are_refused(layout: Layout, split: str) -> None:
    save(layout, score(GOOD, constant(1.0), **{split: np.ones(99)}))
    with pytest.raises(DataError, match=f"good: 99 surprisals on {split}, but 100 of its tokens are scored"):
        collect(layout)


def test_missing_scores_are_named(layout: Layout) -> None:
    with pytest.raises(DataError, match=r"runs.other: no such folder: run the stage that writes it"):
        collect_scores(layout, ["good", "other"], TEXTS, mixtures=True)
