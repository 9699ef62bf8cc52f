"""Smoothing: by hand, as distributions, against nltk, and a method that is added."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.lm import KneserNeyInterpolated

from seqlm.core.errors import DataError
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models import registry
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.models.registry import build_models, load_counts, save_models
from small_runs import ngram_settings
from templates.absolute import AbsoluteDiscounting

# a b a b a c over <unk> a b c: the bigrams ab and ba occur twice, ac once.
TEXT = np.array([1, 2, 1, 2, 1, 3])
V = 4


def test_laplace_by_hand() -> None:
    counts = count_ngrams(TEXT, V, 3)
    model = Laplace(counts, 3, (1.0, 2.0, 3.0))
    # (8.3.5): P(a) = (3 + 1/4) / (6 + 1), P(b) = (2 + 1/4) / 7
    p_a, p_b = 3.25 / 7, 2.25 / 7
    # a is followed by b twice and by c once: P(b | a) = (2 + 2 P(b)) / (3 + 2)
    p_b_after_a = (2 + 2 * p_b) / 5
    # ab is followed by a twice: P(a | ab) = (2 + 3 P(a)) / (2 + 3)
    p_a_after_ab = (2 + 3 * p_a) / 5
    assert model.probs(np.array([1, 2, 1])) == pytest.approx([p_b_after_a, p_a_after_ab])
    assert model.next_distribution(np.array([1, 2]))[1] == pytest.approx(p_a_after_ab)
    # With epsilon 0, what was never seen is impossible: b never follows b.
    assert token_nll(Laplace(counts, 2, (0.0, 0.0)), np.array([1, 2, 2])) == pytest.approx([math.log(3 / 2), math.inf])


def test_kneser_ney_by_hand() -> None:
    # Bigrams: ab 2, ba 2, ac 1. Counts of counts: n1 = 1, n2 = 2, n3 = 0, so the fallback
    # discounts 0.5, 1, 1.5 hold; they hold for the unigrams as well.
    model = KneserNey(count_ngrams(TEXT, V, 2), 2)
    assert model.fallback_orders == [1, 2]
    # Continuation counts: a follows b and begins the text: 2; b follows a: 1; c follows a: 1.
    # P(b) = (1 - 0.5) / 4 + backoff / 4 where backoff = (1 + 0.5 + 0.5) / 4
    p_b = 0.5 / 4 + 0.5 / 4
    # After a: ab 2, ac 1. P(b | a) = (2 - 1) / 3 + (1 + 0.5) / 3 * P(b)
    assert model.probs(np.array([1, 2])) == pytest.approx([1 / 3 + 0.5 * p_b])


def test_the_discounts_follow_chen_and_goodman() -> None:
    text = np.random.default_rng(0).zipf(1.5, 5000) % 50
    counts = count_ngrams(text, 50, 2)
    n1, n2, n3, n4 = (int((counts.table(2).counts == k).sum()) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    model = KneserNey(counts, 2)
    assert model.statistics[1].discounts == pytest.approx(
        (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    )
    assert 2 not in model.fallback_orders
    # Four tokens once, one twice, one three times: y = 4 / (4 + 2), and the discount for two is 2 - 3 y = 0, which is
    # valid.
    model = KneserNey(count_ngrams(np.array([1, 2, 3, 4, 5, 5, 6, 6, 6]), 7, 1), 1)
    assert model.fallback_orders == []
    assert model.statistics[0].discounts == pytest.approx((2 / 3, 0, 3))
    # An invalid discount replaces all three of its order.
    times = np.repeat([1, 2, 3, 4], [16_507, 1914, 1661, 900])
    unigram = KneserNey(count_ngrams(np.repeat(np.arange(1, len(times) + 1), times), len(times) + 1, 1), 1)
    # y = 16507 / (16507 + 2 * 1914), and 2 - 3 y 1661 / 1914 = -0.11.
    assert unigram.fallback_orders == [1]
    assert unigram.statistics[0].discounts == (0.5, 1.0, 1.5)


texts = st.lists(st.integers(0, 4), min_size=4, max_size=80)
contexts = st.lists(st.integers(0, 5), max_size=5)


@given(texts, contexts, st.floats(0, 100))
@example([1, 1, 2, 0], [0], 5e-324)  # the smallest number there is
def test_every_model_is_a_distribution(text: list[int], context: list[int], epsilon: float) -> None:
    counts = count_ngrams(np.array(text), 6, 4)  # token 5 is never seen
    for name, model in build_models(counts, ngram_settings(*[epsilon] * 4)).items():
        probs = model.next_distribution(np.array(context, int))
        assert probs.shape == (6,)
        assert (probs >= 0).all()
        assert probs.sum() == pytest.approx(1), name


@given(texts, texts)
def test_scoring_a_text_agrees_with_asking_token_by_token(train: list[int], text: list[int]) -> None:
    counts = count_ngrams(np.array(train), 6, 3)
    for name, model in build_models(counts, ngram_settings(0.5, 1.0, 2.0)).items():
        whole = model.probs(np.array(text))
        for end in range(1, len(text)):
            assert whole[end - 1] == pytest.approx(model.next_distribution(np.array(text[:end]))[text[end]]), name


def test_nltk_agrees_on_interpolated_kneser_ney_where_the_definitions_meet() -> None:
    # nltk has one discount for all counts, none for the unigram, and no uniform distribution
    # below it. So the highest order alone is compared, on a text in which every bigram
    # occurs once: there our fallback discount for counts of 1 is the only one that acts.
    words, text = ["a", "b", "c"], np.array([0, 0, 1, 0, 2, 1, 1, 2, 2, 0])
    named = [words[token] for token in text]
    theirs = KneserNeyInterpolated(2, discount=0.5)
    theirs.fit([[(word,) for word in named] + list(pairwise(named))], words)
    ours = KneserNey(count_ngrams(text, 3, 2), 2)
    assert ours.statistics[1].discounts[0] == 0.5
    lower = ours.next_distribution(np.array([], int))
    unigram = np.array([theirs.score(word) for word in words])
    for first, word in enumerate(words):
        # A context has three continuations of count 1 each: (1 - 0.5) / 3 and a backoff of 3 * 0.5 / 3.
        both = np.array([theirs.score(second, [word]) for second in words])
        assert ours.next_distribution(np.array([first])) - 0.5 * lower == pytest.approx(both - 0.5 * unigram)


def test_unknown_tokens_are_as_likely_as_tokens_seen_once() -> None:
    """Train has 1 and 2 three times, and 3 and 4 once. Of its 8 tokens 2 were new and stayed alone."""
    counts = count_ngrams(np.array([1, 2, 1, 2, 1, 2, 3, 4]), 6, 2)
    before, after = (KneserNey(counts, 1, unknown=unknown).unigram for unknown in ("uniform", "good_turing"))
    assert after[1:] == pytest.approx(before[1:] * 3 / 4)
    assert after[0] == pytest.approx(before[0] * 3 / 4 + 1 / 4)
    # A model of order 2 asks how many distinct bigrams end in a token: 12, 21, 23, 34, and the 1 that begins the text.
    lower = KneserNey(counts, 2, unknown="good_turing").unigram
    assert lower[0] == pytest.approx(KneserNey(counts, 2).unigram[0] * 3 / 5 + 2 / 5)
    # After 4, which nothing follows, and after a token that was never seen, the unigram predicts.
    assert KneserNey(counts, 2, unknown="good_turing").next_distribution(np.array([5])) == pytest.approx(lower)
    # In a text that has unknown tokens itself, as with min_freq 2, <unk> is counted as any token; so is a single one.
    for text in ([1, 2, 1, 2, 0, 0], [1, 2, 1, 2, 0]):
        counts = count_ngrams(np.array(text), 3, 1)
        assert KneserNey(counts, 1, unknown="good_turing").unigram.tolist() == KneserNey(counts, 1).unigram.tolist()
    # Even if every token occurs once, known tokens keep a share.
    counts = count_ngrams(np.arange(1, 5), 5, 1)
    assert KneserNey(counts, 1, unknown="good_turing").unigram.min() > 0


def test_stored_models_are_those_that_were_saved_with_their_vocabulary(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 4, 200)
    counts = count_ngrams(ids[:100], 4, 3)
    settings = ngram_settings(1.0, 2.0)
    save_models(tmp_path, counts, settings, (4, "abc"))
    stored, expected = build_models(*load_counts(tmp_path, (4, "abc"))), build_models(counts, settings)
    assert list(stored) == list(expected)
    for name, model in expected.items():
        assert stored[name].probs(ids).tolist() == model.probs(ids).tolist()
    with pytest.raises(DataError, match="built with a different vocabulary: count again"):
        load_counts(tmp_path, (4, "abd"))


def test_a_method_that_is_added_is_built_and_listed_once_it_has_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_ngrams(TEXT, V, 2)
    methods = {method.smoothing: method for method in registry.SMOOTHINGS} | {"absolute": AbsoluteDiscounting}
    settings = ngram_settings(1.0)
    monkeypatch.setattr(registry, "SMOOTHINGS", tuple(methods.values()))
    assert "absolute-2" not in build_models(counts, settings)
    models = build_models(counts, settings | {"absolute": {"discount": 0.5}})
    for context in ([], [1], [3], [0, 0]):
        assert models["absolute-2"].next_distribution(np.array(context, int)).sum() == pytest.approx(1)
