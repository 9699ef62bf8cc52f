"""Pruned Kneser-Ney models: what stays, what it costs, and that distributions sum to 1."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError, ParamsError
from seqlm.ngrams.counts.count_tables import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.pruned import PrunedKneserNey, load_pruned, smaller

V = 4
STREAMS = st.lists(st.integers(0, V - 1), min_size=4, max_size=60).map(np.array)
PRUNE = st.tuples(st.just(0), st.integers(0, 2), st.integers(0, 3)).map(sorted)


def model_of(ids: Ids) -> KneserNey:
    return KneserNey(count_ngrams(ids, V, 3), 3, unknown="good_turing")


def listed(model: PrunedKneserNey, order: int) -> set[tuple[int, ...]]:
    if order > model.order:
        return set()
    table = model.counts.table(order)
    return set(map(tuple, table.tokens_of(np.arange(len(table))).tolist()))


@given(STREAMS, PRUNE)
def test_what_is_rare_is_left_out_and_every_distribution_sums_to_one(ids: Ids, prune: list[int]) -> None:
    model = PrunedKneserNey.of(model_of(ids), prune)
    for order in (2, 3):
        counts = Counter(zip(*(ids[start:].tolist() for start in range(order)), strict=False))
        assert listed(model, order) == {ngram for ngram, count in counts.items() if count > prune[order - 1]}
    for context in ([], [1], [2, 3], [0, 0], *ids[None, -2:].tolist()):
        probs = model.next_distribution(np.array(context, np.int64))
        assert probs.sum() == pytest.approx(1, abs=1e-6)
        assert (probs > 0).all()
    found = model.probs(ids)
    expected = [model.next_distribution(ids[: end + 1])[ids[end + 1]] for end in range(len(ids) - 1)]
    assert found == pytest.approx(np.array(expected))


@given(STREAMS)
def test_pruning_nothing_changes_nothing(ids: Ids) -> None:
    model = model_of(ids)
    assert PrunedKneserNey.of(model, [0, 0, 0]).probs(ids) == pytest.approx(model.probs(ids), rel=1e-6)
    assert smaller(model, [0, 0, 0]) is model


def test_by_hand() -> None:
    # 1 2 1 2 1 3: 12 and 21 occur twice, 13 once. After 1 came 2, 2, 3. The discounts are the fallback: 0.5, 1, 1.5.
    ids = np.array([1, 2, 1, 2, 1, 3])
    model = KneserNey(count_ngrams(ids, V, 2), 2)
    pruned = PrunedKneserNey.of(model, [0, 1])
    unigram = model.unigram
    # 2 keeps (2 - 1) / 3. The weight of the unigram was (1 + 0.5) / 3; the share (1 - 0.5) / 3 of 3 joins it.
    assert model.next_distribution(np.array([1])) == pytest.approx(
        0.5 * unigram + np.array([0, 0, 1 / 3, 0.5 / 3]), rel=1e-6
    )
    assert pruned.next_distribution(np.array([1])) == pytest.approx(
        2 / 3 * unigram + np.array([0, 0, 1 / 3, 0]), rel=1e-6
    )


def test_a_lower_order_is_the_model_of_that_order() -> None:
    ids = np.random.default_rng(0).integers(0, V, 300)
    lower = smaller(model_of(ids), order=2)
    assert isinstance(lower, KneserNey)
    assert (lower.probs(ids) == KneserNey(count_ngrams(ids, V, 2), 2, unknown="good_turing").probs(ids)).all()
    # Nothing of order 3 occurs so often.
    assert smaller(model_of(ids), [0, 0, 200]).order == 2


@pytest.mark.parametrize(
    ("prune", "order", "complaint"),
    [
        ([1], None, r"prune = \[1\]: must begin with 0 and never fall, as in \[0, 0, 1\]"),
        ([0, 2, 1], None, "must begin with 0 and never fall"),
        ([0, 0, 0, 1], None, "more numbers than the 3 orders"),
        ([0, 0, 1], 2, "more numbers than the 2 orders"),
        ([0, -1], None, r"prune"),
        (1, None, r"prune = 1: "),
        (["x"], None, r"prune"),
        ([], 4, "order = 4: the model has order 3"),
        ([], 0, "order"),
    ],
)
def test_wrong_arguments(prune: list[int], order: int | None, complaint: str) -> None:
    with pytest.raises(ParamsError, match=complaint):
        smaller(model_of(np.array([1, 2, 3, 1, 2, 3])), prune, order)


def test_a_stored_model_is_the_same(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, V, 300)
    model = smaller(model_of(ids), [0, 0, 1])
    assert isinstance(model, PrunedKneserNey)
    model.save(tmp_path, (V, "x"))
    assert (load_pruned(tmp_path, (V, "x")).probs(ids) == model.probs(ids)).all()
    with pytest.raises(DataError, match=r"pruned\.json"):
        load_pruned(tmp_path, (V, "another"))
