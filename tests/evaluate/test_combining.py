"""Which models are the best of their family, and what is made of them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.layout import Layout
from seqlm.evaluate.combining import Scores, read_scores
from seqlm.score.heldout.splits import Stream
from seqlm.score.store import BEST_OF_KIND, Score, save_score


def stream(size: int) -> Stream:
    return Stream(np.ones(size, np.int64), size, np.zeros(size), np.arange(1, size + 1))


STREAMS = {"char": {split: stream(101) for split in ("train", "val", "test")}}


def score(name: str, nats: float, **about: object) -> Score:
    return Score(name, "char", dict.fromkeys(("train", "val", "test"), np.full(100, nats)), about)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with two runs, of which ``good`` was evaluated dynamically too, and two models that count."""
    layout = Layout(tmp_path)
    for made in (score("good", 1.0), score("weak", 2.0)):
        save_score(layout.scores_of_run(made.name), made)
    adapted = score("good+dynamic", 0.9, choices={"dynamic_lr": 0.1})
    save_score(layout.dynamic_scores_of_run("good"), adapted)
    for made in (score("char-first", 1.5, strongest=True), score("char-second", np.inf, strongest=False)):
        save_score(layout.scores_of_ngrams("char") / made.name, made)
    layout.scores_by_characters.mkdir()
    return layout


def read(layout: Layout, mixtures: bool) -> Scores:
    return read_scores(layout, ["good", "weak"], STREAMS, mixtures)


def test_the_best_run_is_adapted_and_mixed_with_the_best_that_counts(layout: Layout) -> None:
    found = read(layout, mixtures=True)
    assert [made.name for made in found.counting] == ["char-first", "char-second"]
    assert [made.name for made in found.networks] == ["good", "weak"]
    mixed = ["good+char-first", "good+dynamic+char-first"]
    assert {made.name for made in found.combined} == {"good+dynamic", *mixed}
    # Each mixture's better half is better at every token: it gets all of the weight.
    assert found.choices == pytest.approx({
        "weight of good in good+char-first": 1.0, "weight of char-first in good+char-first": 0.0,
        "dynamic_lr of good+dynamic": 0.1,
        "weight of good+dynamic in good+dynamic+char-first": 1.0,
        "weight of char-first in good+dynamic+char-first": 0.0,
    })  # fmt: skip
    assert [made.name for made in read(layout, mixtures=False).combined] == ["good+dynamic"]


def test_runs_that_help_the_best_one_are_mixed_in(layout: Layout) -> None:
    # The best run is sure of two tokens of three, the other one of the third, the model that counts of none.
    nats = np.array([0.1, 0.1, 9.0] * 33 + [0.1])
    for name, made in (("good", nats), ("weak", 9.1 - nats)):
        save_score(layout.scores_of_run(name), Score(name, "char", dict.fromkeys(("train", "val", "test"), made)))
    names = [made.name for made in read(layout, mixtures=True).combined]
    assert names == ["good+dynamic", "good+char-first", "good+weak", "good+dynamic+char-first"]


def test_the_best_run_that_learns_on_is_mixed_with_the_model_that_counts_on(layout: Layout) -> None:
    counting_on = score("char-kneser-ney-9+dynamic", 1.2)
    save_score(layout.scores_of_ngrams("char") / counting_on.name, counting_on)
    found = read(layout, mixtures=True)
    assert [made.name for made in found.counting] == ["char-first", "char-second"]
    mixed = ["good+char-first", "good+char-kneser-ney-9+dynamic"]
    assert [made.name for made in found.combined] == [counting_on.name, "good+dynamic", *mixed]
    assert found.choices["weight of good+dynamic in good+char-kneser-ney-9+dynamic"] == pytest.approx(1.0)
    assert [made.adapts for made in found.combined] == [True, True, False, True]
    assert [made.name for made in read(layout, mixtures=False).combined] == [counting_on.name, "good+dynamic"]


def test_a_model_that_counts_on_is_mixed_with_a_network_that_stays_as_it_is(layout: Layout) -> None:
    shutil.rmtree(layout.dynamic_scores_of_run("good"))
    counting_on = score("char-kneser-ney-9+dynamic", 1.2)
    save_score(layout.scores_of_ngrams("char") / counting_on.name, counting_on)
    names = [made.name for made in read(layout, mixtures=True).combined]
    assert names == [counting_on.name, "good+char-first", "char-kneser-ney-9+dynamic+good"]


def test_the_partner_is_the_one_that_helps_most_whatever_it_is_alone(layout: Layout) -> None:
    # The best run is sure of every second token; one of the two models that count is so of the others.
    nats = np.array([0.1, 3.0] * 50)
    save_score(layout.scores_of_run("good"), Score("good", "char", dict.fromkeys(("train", "val", "test"), nats)))
    for name, made in (("char-alone", nats - 0.01), ("char-helper", 3.2 - nats)):
        about = {BEST_OF_KIND: False}
        save_score(
            layout.scores_of_ngrams("char") / name, Score(name, "char", dict.fromkeys(("val", "test"), made), about)
        )
    found = read(layout, mixtures=True)
    assert "good+char-helper" in [made.name for made in found.combined]


def test_each_family_has_the_figures_of_its_best_on_val(layout: Layout) -> None:
    found = read(layout, mixtures=False)
    measures = {made.name: made.measures(STREAMS["char"]) for made in found.all}
    headlines = found.headlines(measures)
    # exp of the mean surprisal; a bit is ln 2 nats, and 100 tokens are scored over 101 characters.
    assert headlines["network"]["val_perplexity"] == pytest.approx(np.e)
    assert headlines["network"]["val_bits"] == pytest.approx(1 / np.log(2) * 100 / 101)
    assert headlines["counting"]["test_perplexity"] == pytest.approx(np.exp(1.5))
    assert headlines["combined"]["test_perplexity"] == pytest.approx(np.exp(0.9))
    assert Scores([], found.networks, [], {}).headlines(measures)["combined"] == {}


def test_runs_and_the_best_that_counts_are_diagnosed_best_first(layout: Layout) -> None:
    assert BEST_OF_KIND == "strongest"
    assert [made.name for made in read(layout, mixtures=True).of_characters()] == ["good", "char-first", "weak"]
