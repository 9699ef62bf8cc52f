"""Smoothing: by hand, as distributions, and against nltk."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey, Laplace, Uniform, build_models, nats, tune_epsilons

# a b a b a c over <unk> a b c: 6 unigrams; ab twice, ba twice, ac once; aba, bab, bac once... see below.
TEXT = np.array([1, 2, 1, 2, 1, 3])
V = 4


def test_laplace_by_hand() -> None:
    model = Laplace(count_ngrams(TEXT, V, 3), 3, (1.0, 2.0, 3.0), "unigram")
    # (8.3.5): P(a) = (3 + 1/4) / (6 + 1), P(b) = (2 + 1/4) / 7
    p_a, p_b = 3.25 / 7, 2.25 / 7
    # a is followed by b twice and by c once: P(b | a) = (2 + 2 P(b)) / (3 + 2)
    p_b_after_a = (2 + 2 * p_b) / 5
    # ab is followed by a twice: P(a | ab) = (2 + 3 P(a)) / (2 + 3)
    p_a_after_ab = (2 + 3 * p_a) / 5
    assert model.probs(np.array([1, 2, 1])) == pytest.approx([p_b_after_a, p_a_after_ab])
    assert model.next_distribution(np.array([1, 2]))[1] == pytest.approx(p_a_after_ab)


def test_laplace_that_backs_off_to_the_next_lower_order() -> None:
    model = Laplace(count_ngrams(TEXT, V, 3), 3, (1.0, 2.0, 3.0), "lower")
    p_a = 3.25 / 7
    p_a_after_b = (2 + 2 * p_a) / 4  # b is followed by a twice
    assert model.probs(np.array([1, 2, 1]))[1] == pytest.approx((2 + 3 * p_a_after_b) / 5)


def test_laplace_with_epsilon_zero_is_honest() -> None:
    model = Laplace(count_ngrams(TEXT, V, 2), 2, (0.0, 0.0), "unigram")
    surprisals = nats(model, np.array([1, 2, 2]))
    assert surprisals[0] == pytest.approx(-math.log(2 / 3))
    assert math.isinf(surprisals[1])  # b never follows b


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
    model = KneserNey(counts, 2)
    n1, n2, n3, n4 = (int((counts.table(2).counts == k).sum()) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    expected = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    assert model.discounts[1] == pytest.approx(expected)


texts = st.lists(st.integers(0, 4), min_size=4, max_size=80)
contexts = st.lists(st.integers(0, 5), max_size=5)


@given(texts, contexts, st.sampled_from(["unigram", "lower"]), st.floats(0, 100))
@example([1, 1, 2, 0], [0], "unigram", 5e-324)  # the smallest number there is
def test_every_model_is_a_distribution(text: list[int], context: list[int], backoff: str, epsilon: float) -> None:
    counts = count_ngrams(np.array(text), 6, 4)  # token 5 is never seen
    for name, model in build_models(counts, (epsilon,) * 4, backoff).items():
        probs = model.next_distribution(np.array(context, int))
        assert probs.shape == (6,)
        assert (probs >= 0).all()
        assert probs.sum() == pytest.approx(1), name


@given(texts, texts)
def test_scoring_a_text_agrees_with_asking_token_by_token(train: list[int], text: list[int]) -> None:
    counts = count_ngrams(np.array(train), 6, 3)
    for name, model in build_models(counts, (0.5, 1.0, 2.0), "unigram").items():
        whole = model.probs(np.array(text))
        for place in range(1, len(text)):
            assert whole[place - 1] == pytest.approx(model.next_distribution(np.array(text[:place]))[text[place]]), name


def test_uniform_has_the_perplexity_of_its_size() -> None:
    assert np.exp(nats(Uniform(28), np.zeros(10, int)).mean()) == pytest.approx(28)


def test_epsilons_are_chosen_where_val_is_best() -> None:
    rng = np.random.default_rng(1)
    train, val = rng.integers(1, 5, 300), rng.integers(1, 5, 100)
    epsilons, curve = tune_epsilons(count_ngrams(train, 5, 2), val, 2, "unigram")
    for order in (1, 2):
        of_order = [(score, epsilon) for n, epsilon, score in curve if n == order]
        assert min(of_order)[1] == epsilons[order - 1]
    # The text has no order: bigrams say nothing, and the best model all but ignores them.
    assert epsilons[1] > 100


def test_nltk_agrees_on_laplace() -> None:
    # nltk's Lidstone adds gamma to every count: (8.3.5) with e1 = gamma * V for unigrams.
    from nltk.lm import Lidstone

    words = ["<unk>", "a", "b", "c"]
    theirs = Lidstone(0.25, 1)
    theirs.fit([[(words[token],) for token in TEXT]], words[1:])
    theirs_size = len(theirs.vocab)  # a, b, c and its own <UNK>
    ours = Laplace(count_ngrams(TEXT, V, 1), 1, (0.25 * theirs_size,), "unigram")
    assert theirs_size == V
    for token in (1, 2, 3):
        assert ours.next_distribution(np.array([]))[token] == pytest.approx(theirs.score(words[token]))


def test_nltk_agrees_on_interpolated_kneser_ney_where_the_definitions_meet() -> None:
    # nltk has one discount for all counts, none for the unigram, and no uniform distribution
    # below it. So the highest order alone is compared, on a text in which every bigram
    # occurs once: there our fallback discount for counts of 1 is the only one that acts.
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import bigrams

    words = ["a", "b", "c"]
    text = np.array([0, 0, 1, 0, 2, 1, 1, 2, 2, 0])
    named = [words[token] for token in text]
    theirs = KneserNeyInterpolated(2, discount=0.5)
    theirs.fit([[(word,) for word in named] + list(bigrams(named))], words)
    ours = KneserNey(count_ngrams(text, 3, 2), 2)
    assert ours.discounts[1][0] == 0.5
    for first in range(3):
        lower = ours.next_distribution(np.array([], int))
        both = ours.next_distribution(np.array([first]))
        # A context has three continuations of count 1 each: (1 - 0.5) / 3 and a backoff of 3 * 0.5 / 3.
        for second in range(3):
            expected = theirs.score(words[second], [words[first]]) - 0.5 * theirs.score(words[second])
            assert both[second] - 0.5 * lower[second] == pytest.approx(expected)
