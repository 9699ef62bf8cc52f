"""Scores, mixtures, what unknown words cost, and how sure the table is."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlm.evaluate.measures import Scored, measure
from seqlm.evaluate.splits import Stream
from seqlm.evaluate.mixtures import best_mixture, mix
from seqlm.train.runs import remove_ghosts, run_names
from seqlm.core.metrics import bits_per_character, perplexity
from seqlm.rnn.scoring import stream_nats
from seqlm.evaluate.ranking import collect_measures, rank_models, table_text
from seqlm.score.dynamic import RmsRule, SgdRule, dynamic_nats, gradient_roots, trained_weights
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scratch import ScratchRNN
from seqlm.score.spelling import NATS_OF_ANY_CHARACTER, SpellingModel
from seqlm.evaluate.passages import passage
from seqlm.report.surprisal import passage_html
from seqlm.evaluate.uncertainty import draw_bits


def stream(size: int, num_chars: int | None = None) -> Stream:
    ids = np.ones(size, np.int64)
    return Stream(ids, num_chars or size, np.zeros(size), np.arange(1, size + 1))


def test_perplexity_is_summed_first_and_exponentiated_last() -> None:
    # Two tokens with p = 1/2 and 1/8: exp((ln 2 + ln 8) / 2) = 4, not the mean of 2 and 8.
    assert perplexity(math.log(2) + math.log(8), 2) == pytest.approx(4)
    assert bits_per_character(math.log(2) + math.log(8), 8) == pytest.approx(0.5)
    assert math.isinf(perplexity(1e6, 1))


def scratch() -> ScratchRNN:
    model = ScratchRNN(6, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.flat.mul_(50)
    return model


def lstm() -> FrameworkRNN:
    return FrameworkRNN(
        6, model="lstm", num_hiddens=8, num_layers=2, embedding_size=4, tie_weights=False, dropout=0.5,
        activation="tanh", seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("make", [scratch, lstm])
@settings(deadline=None, max_examples=20)
@given(size=st.integers(2, 60), chunk=st.integers(1, 70))
def test_any_chunking_gives_the_same_scores(make, size: int, chunk: int) -> None:
    ids = np.random.default_rng(size).integers(0, 6, size)
    whole, parts = stream_nats(make(), ids), stream_nats(make(), ids, chunk=chunk)
    assert whole.shape == (size - 1,)
    assert parts.sum() == pytest.approx(whole.sum(), rel=1e-5)


@pytest.mark.parametrize("name", ["sgd", "rms"])
def test_dynamic_evaluation_learns_from_what_it_has_seen_and_only_from_that(name: str) -> None:
    ids, model = np.tile([1, 2, 3], 100), scratch()
    before = model.flat.detach().clone()
    rule: SgdRule | RmsRule = SgdRule(1.0, 1.0)
    if name == "rms":
        roots = gradient_roots(model, ids, every=6, num_segments=10)
        rule = RmsRule(0.05, 0.001, roots, trained_weights(model))
    adapted = dynamic_nats(model, ids, every=6, apply=rule.apply)
    plain = stream_nats(model, ids)
    assert adapted[:6] == pytest.approx(plain[:6], rel=1e-5)  # nothing is learnt before the first step
    assert adapted[-30:].mean() < plain[-30:].mean() / 2
    assert torch.equal(model.flat, before)
    changed = ids.copy()
    changed[-1] = 5
    assert dynamic_nats(model, changed, every=6, apply=rule.apply)[:-1] == pytest.approx(adapted[:-1])


def test_root_mean_squares_by_hand_and_the_step_that_they_scale() -> None:
    model, ids = scratch(), np.array([1, 2, 3, 1, 2])
    state, squares = model.initial_state(1), []
    for start in (0, 2):
        part = torch.from_numpy(ids[start : start + 3])[None]
        _, state = model.compute_gradients(part[:, :-1], part[:, 1:], state)
        squares.append(model.flat.grad.square())
    (root,) = gradient_roots(model, ids, every=2, num_segments=2)
    torch.testing.assert_close(root, ((squares[0] + squares[1]) / 2).sqrt())
    assert gradient_roots(model, ids[:1], every=2, num_segments=2)[0].sum() == 0

    weight = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
    weight.grad = torch.tensor([0.2, -0.4, 0.0])
    rule = RmsRule(0.1, 0.5, [torch.tensor([0.1, 0.2, 0.3])], [torch.tensor([0.0, 0.0, 3.0])])
    with torch.no_grad():
        rule.apply([weight])
    # Steps of -0.1 * 2, +0.1 * 2 and 0 give 0.8, 1.2 and 1; roots of 0.5, 1 and 1.5 times their
    # average, times the decay of 0.5, are the shares of the way back: 0.25, 0.5 and 0.75.
    torch.testing.assert_close(weight.detach(), torch.tensor([0.6, 0.6, 2.5]), rtol=1e-3, atol=1e-3)


def test_measures_by_hand() -> None:
    nats = np.log([2.0, 8.0])
    found = measure(nats, Stream(np.array([1, 0, 1]), 4, np.array([0, math.log(4), 0]), np.array([1, 2, 3])))
    assert found["perplexity"] == pytest.approx(4)
    assert found["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8) and 2 bits for the unknown token: 6 bits over 4 characters.
    assert found["bits_per_character"] == pytest.approx(1.5)


def test_infinity_is_null_with_a_reason() -> None:
    found = measure(np.array([1.0, np.inf]), stream(3))
    assert found["perplexity"] is None
    assert found["reason"] == "infinite: 1 tokens have probability 0"


def test_a_mixture_is_no_worse_on_val_than_either() -> None:
    rng = np.random.default_rng(0)
    first = Scored("a", "char", {"val": rng.exponential(1, 200), "test": rng.exponential(1, 200)})
    second = Scored("b", "char", {"val": rng.exponential(1, 200), "test": rng.exponential(1, 200)})
    mixed, weight = best_mixture(first, second)
    assert 0 < weight < 1
    assert mixed.nats["val"].sum() < min(first.nats["val"].sum(), second.nats["val"].sum())
    # Half of p = 1/2 and half of p = 1/8 is 5/16.
    assert mix(np.log([2.0]), np.log([8.0]), 0.5) == pytest.approx([math.log(16 / 5)])


def test_unknown_words_pay_for_their_spelling() -> None:
    spelling = SpellingModel(["sea", "seas", "tea", "teas", "eat", "seat"])
    likely, unlikely, foreign = spelling.nats(["seats", "ttsse", "sée"])
    assert likely < unlikely
    assert foreign > NATS_OF_ANY_CHARACTER
    assert spelling.nats([]).shape == (0,)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(0), 0
    for seed in range(100):
        # Neighbouring tokens share their difficulty, as in text.
        nats = np.repeat(rng.exponential(1.0, 200), 10)
        low, high = draw_bits(nats, stream(2001, 2000), seed).interval
        covered += low <= 1 / math.log(2) <= high
    assert 85 <= covered <= 99


def test_models_are_compared_on_the_same_draws() -> None:
    rng = np.random.default_rng(0)
    base = rng.exponential(1.0, 2000)
    draws = [draw_bits(nats, stream(2001), 0) for nats in (base, base + 0.01, rng.permutation(base))]
    # A hundredth of a nat more everywhere is sure; the same numbers in another order are no difference.
    assert draws[0].compare(draws[1]) == "better"
    assert draws[1].compare(draws[0]) == "worse"
    assert draws[0].compare(draws[2]) == "no difference"


def test_the_table_is_sorted_and_infinite_models_come_last() -> None:
    streams = {"char": {split: stream(101) for split in ("train", "val", "test")}}
    scored = [
        Scored("weak", "char", dict.fromkeys(("train", "val", "test"), np.full(100, 2.0))),
        Scored("never", "char", dict.fromkeys(("train", "val", "test"), np.full(100, np.inf))),
        Scored("strong", "char", dict.fromkeys(("train", "val", "test"), np.full(100, 1.0))),
    ]
    measures = collect_measures(scored, streams, {"strong": 50})
    assert measures["strong"]["fitted"]["tokens"] == 49
    table = rank_models(scored, streams, measures, 0)
    assert table["model"].tolist() == ["strong", "weak", "never"]
    assert table["against_next"][0] == "better"
    assert pd.isna(table["against_next"][1])
    assert "infinite" in table_text(table)


def test_ghosts_are_removed_and_the_living_stay(tmp_path: Path) -> None:
    for name in ("configs/a.json", "runs/a/weights", "runs/gone/weights", "histories/gone/h", "histories/a/h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    removed = remove_ghosts(run_names(tmp_path / "configs"), tmp_path / "runs", tmp_path / "histories", tmp_path / "x")
    assert [path.relative_to(tmp_path).as_posix() for path in removed] == ["runs/gone", "histories/gone"]
    assert (tmp_path / "runs/a/weights").exists()


def test_a_passage_shows_markup_as_text() -> None:
    found = passage(["<b>", "&", "x"], " ", np.array([math.log(2), np.inf]), 100)
    assert found["bits"] == [None, 1.0, None]
    html = passage_html(found)
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert 'title="1.0 bits"' in html
