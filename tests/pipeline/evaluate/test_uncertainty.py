"""Intervals of models, and comparisons between models."""

import math
from dataclasses import replace

import numpy as np
import pytest

from made_scores import scored_text, stream_of
from seqlm.models.scored_text import NUM_BLOCKS, Stream
from seqlm.pipeline.evaluate.uncertainty import Comparison, ErrorModel, calibrated, critical_value, error_models
from seqlm.pipeline.score.ngrams import Folds

# Two reference models on three folds and on four blocks. Deviations: folds 1, blocks 2; of the differences, folds
# (0.5, 0.5, 0.5 + 0.3 sqrt(3)) 0.3, blocks (0, 0, 3, 3) sqrt(3).
FOLDS = Folds(
    bits=[[1.0, 2.0, 3.0], [0.5, 1.5, 2.5 - 0.3 * math.sqrt(3)]],
    test_blocks=[[0.0, 0.0, math.sqrt(12), math.sqrt(12)], [0.0, 0.0, math.sqrt(12) - 3, math.sqrt(12) - 3]],
)


def test_critical_values() -> None:
    # Without folds and for one comparison, they are the quantiles of printed tables.
    found = [round(critical_value(1, degrees), 3) for degrees in (1, 2, 4, 7, 9, 19, 49)]
    assert found == [12.706, 4.303, 2.776, 2.365, 2.262, 2.093, 2.01]
    # T is inside +-c with probability c / sqrt(2 + c^2) for 2 degrees of freedom, both of two with its square.
    both = math.sqrt(0.95)
    assert critical_value(2, 2) == pytest.approx(both * math.sqrt(2 / (1 - both**2)))
    # With many blocks, only the folds are uncertain.
    assert critical_value(1, 2000, 7) == pytest.approx(critical_value(1, 7), abs=0.005)
    # The folds are the same for all comparisons, so this is less than by Bonferroni's correction.
    draws = (np.random.default_rng(0).normal(size=(20000, 10)), np.random.default_rng(1).chisquare(7, size=(20000, 1)))
    largest = np.abs(draws[0] / np.sqrt(draws[1] / 7)).max(axis=1)
    assert critical_value(10, 2000, 7) == pytest.approx(np.quantile(largest, 0.95), rel=0.02)


def test_folds_scale_the_deviation_of_blocks() -> None:
    assert calibrated(FOLDS, 4) == (
        ErrorModel(pytest.approx(1 / 2), 2, 2), ErrorModel(pytest.approx(0.3 / math.sqrt(3)), 2, 2)
    )  # fmt: skip
    # A text with four times as many blocks as test, of a fourth of its size, has as wide an interval.
    assert calibrated(FOLDS, 16).models == ErrorModel(pytest.approx(1 / 4), 2, 2)
    # A text that repeats itself has equal blocks.
    assert ErrorModel.of_folds(np.array([1.0, 2.0]), np.ones(4), 4) == ErrorModel.of_blocks(4) == ErrorModel(1 / 2, 2)


def test_folds_matter_only_if_all_of_test_was_scored_and_is_long_enough() -> None:
    independent = (ErrorModel.of_blocks(NUM_BLOCKS),) * 2
    assert error_models(scored_text(1000), FOLDS) == calibrated(FOLDS, NUM_BLOCKS)
    assert error_models(scored_text(1000), None) == independent
    assert error_models(replace(scored_text(1000), share=0.5), FOLDS) == independent
    assert error_models(scored_text(40), None) == (ErrorModel.of_blocks(2),) * 2
    assert error_models(scored_text(39), FOLDS) is None


def test_an_interval_is_for_another_passage_and_left_out_below_zero() -> None:
    # Four blocks of mean 9 and deviation 2: the standard error is 1, and sqrt(2) for the difference of two passages.
    blocks = 9 + np.array([-1, -1, 1, 1]) * math.sqrt(3)
    margin = math.sqrt(2) * 4.303
    assert ErrorModel.of_blocks(4).interval(blocks) == pytest.approx((9 - margin, 9 + margin), abs=1e-3)
    assert ErrorModel.of_blocks(4).interval(blocks - 9 + margin + 0.01) != (None, None)
    assert ErrorModel.of_blocks(4).interval(blocks - 9 + margin - 0.01) == (None, None)
    assert ErrorModel.of_blocks(4).interval(np.zeros(4)) == (0, 0)


def test_models_are_compared_by_the_differences_between_their_blocks() -> None:
    differences = np.array([0.9] * 4 + [1.0] + [1.1] * 4)
    # They have mean 1, deviation 0.1, and standard error 0.1 / 3.
    worse, better = (ErrorModel.of_blocks(9).compare(sign * differences, 3) for sign in (1, -1))
    margin = pytest.approx(critical_value(3, 4) / 30)
    assert worse == Comparison(pytest.approx(1), margin, "worse")
    assert better == Comparison(pytest.approx(-1), margin, "better")
    # A difference that is the same everywhere is certain.
    assert ErrorModel.of_blocks(9).compare(np.full(9, -0.5), 3) == Comparison(-0.5, 0, "better")
    assert ErrorModel.of_blocks(9).compare(np.zeros(9), 3).best_verdict == "not significant"


def words(*lengths: int, num_separators: int, spelling: float = 0) -> Stream:
    """Return a text of words; the first is not scored, and the last costs its spelling."""
    own, costs = np.array(lengths[1:]), np.zeros(len(lengths) - 1)
    costs[-1] = spelling
    return stream_of(np.ones(len(lengths), np.int64), own, costs, int(own.sum()) + num_separators)


def test_blocks_have_equally_many_characters() -> None:
    bit = math.log(2)
    # Ten characters with 1, 2, ..., 10 bits in four blocks of 2.5: 1 + 2 + 3/2, then 3/2 + 4 + 5, and so on.
    blocks = scored_text(10).block_bits(np.arange(1, 11) * bit, 4)
    assert (blocks * 2.5).tolist() == pytest.approx([4.5, 10.5, 17, 23])
    # Words of 1 and 8 letters, each with a separator: the third word is cut after one of its 9 characters.
    text = words(5, 1, 8, 8, num_separators=3)
    assert text.block_bits(np.array([2, 9, 9]) * bit, 2).tolist() == pytest.approx([1, 1])
    assert text.block_bits(np.array([0, 0, 9]) * bit, 2).tolist() == pytest.approx([0, 9 / 10])
    assert text.block_bits(np.array([0, 0, 18]) * bit, 2).mean() == pytest.approx(18 / 20)
    # They include the cost of unknown tokens.
    text = words(1, 1, 1, num_separators=0, spelling=bit)
    assert text.block_bits(np.zeros(2), 2).tolist() == pytest.approx([0, 1])
    # And of separators, in equal shares: 1 + 1 and 3 + 1 bits for words of two characters each.
    text = replace(words(1, 1, 1, num_separators=2), separator_nll=2 * bit)
    assert text.block_bits(np.array([1, 3]) * bit, 2).tolist() == pytest.approx([2 / 2, 4 / 2])
    # A short text has fewer blocks.
    assert [scored_text(size).num_blocks for size in (0, 19, 20, 999, 1000, 10**6)] == [0, 0, 1, 49, 50, 50]
