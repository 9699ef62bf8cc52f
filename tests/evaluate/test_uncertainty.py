"""Intervals of models, and comparisons between models."""

import math
from dataclasses import replace

import numpy as np
import pytest

from made_scores import scored_text
from seqlm.evaluate.uncertainty import IntervalScales, Scale, holm, t_p_value, t_quantile
from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import NUM_BLOCKS, ScoredText

# Two reference models on three folds and on four blocks. Deviations: folds 1, blocks 2; of the differences, folds
# (0.5, 0.5, 0.5 + 0.3 sqrt(3)) 0.3, blocks (0, 0, 3, 3) sqrt(3).
FOLDS = Folds(
    [[1.0, 2.0, 3.0], [0.5, 1.5, 2.5 - 0.3 * math.sqrt(3)]],
    [[0.0, 0.0, math.sqrt(12), math.sqrt(12)], [0.0, 0.0, math.sqrt(12) - 3, math.sqrt(12) - 3]],
)
ROOT = math.sqrt(1 + 1 / 3)


@pytest.mark.parametrize(
    ("t", "degrees", "p_value"),
    [
        (1.0, 1, 1 / 2),  # Cauchy's distribution
        (1.0, 2, 1 - 1 / math.sqrt(3)),  # 1 - t / sqrt(2 + t^2)
        (-1.0, 2, 1 - 1 / math.sqrt(3)),
        (math.sqrt(3), 3, 1 - 2 / math.pi * (math.pi / 4 + 1 / 2)),  # the angle is 45 degrees
        (2.0, 4, 1 - math.sqrt(1 / 2) * (1 + 1 / 4)),
        (0.0, 7, 1.0),
        (1e9, 8, 0.0),
    ],
)
def test_the_tails_of_students_distribution(t: float, degrees: int, p_value: float) -> None:
    assert t_p_value(t, degrees) == pytest.approx(p_value, abs=1e-12)


def test_quantiles_of_students_distribution_are_those_of_printed_tables() -> None:
    found = [round(t_quantile(degrees), 3) for degrees in (1, 2, 4, 7, 9, 19, 49)]
    assert found == [12.706, 4.303, 2.776, 2.365, 2.262, 2.093, 2.01]


def test_holms_correction() -> None:
    # 3 x 0.01, then 2 x 0.03, then 1 x 0.04, which is not below the one before it.
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx({"b": 0.03, "c": 0.06, "a": 0.06})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_folds_scale_the_deviation_of_blocks() -> None:
    scales = IntervalScales.of_folds(FOLDS)
    assert scales.of_model == Scale(pytest.approx(1 / 2 * ROOT), 2)
    # The factor of differences, 0.3 / sqrt(3) x ROOT = 0.2, is smaller than that of independent blocks, 1 / sqrt(4).
    assert scales.of_difference == Scale(1 / 2, 3)
    wide = Folds(FOLDS.bits, [FOLDS.test_blocks[0], [value * 0.9 for value in FOLDS.test_blocks[0]]])
    # The blocks of the difference have a tenth of the deviation 2.
    assert IntervalScales.of_folds(wide).of_difference == Scale(pytest.approx(0.3 / 0.2 * ROOT), 3)
    # A text with four times as many blocks as test, of a fourth of its size, has as wide an interval.
    assert IntervalScales.of_folds(FOLDS, 16).of_model.factor == pytest.approx(scales.of_model.factor / 2)
    assert IntervalScales.of_folds(FOLDS, 4) == scales
    # A text that repeats itself has equal blocks.
    assert Scale.of_folds(np.array([1.0, 2.0]), np.ones(4)) == Scale.of_blocks(4)


def test_folds_matter_only_if_all_of_test_was_scored_and_is_long_enough() -> None:
    independent = Scale.of_blocks(NUM_BLOCKS)
    assert IntervalScales.of_text(scored_text(1000), FOLDS) == IntervalScales.of_folds(FOLDS, NUM_BLOCKS)
    assert IntervalScales.of_text(scored_text(1000), None) == IntervalScales(independent, independent)
    in_passages = replace(scored_text(1000), share=0.5)
    assert IntervalScales.of_text(in_passages, FOLDS) == IntervalScales(independent, independent)
    assert IntervalScales.of_text(scored_text(40), None) == IntervalScales(Scale.of_blocks(2), Scale.of_blocks(2))
    assert IntervalScales.of_text(scored_text(39), FOLDS) is None


def test_models_are_compared_by_the_differences_between_their_blocks() -> None:
    scales, base = IntervalScales(Scale.of_blocks(9), Scale.of_blocks(9)), np.arange(9) ** 2.0
    shift = np.array([0.9] * 4 + [1.0] + [1.1] * 4)
    blocks = {"a": base, "b": base + shift, "same": base, "shifted": base - 0.5}
    found = scales.compare_pairs(blocks, [("a", "b"), ("b", "a"), ("a", "same"), ("shifted", "a")])
    # b - a has mean 1, deviation 0.1, and standard error 0.1 / 3.
    assert (found["a", "b"].bits, found["a", "b"].margin) == pytest.approx((-1, 2.306 / 30), abs=1e-4)
    assert found["b", "a"].bits == pytest.approx(1)
    # A difference that is the same everywhere is certain.
    shifted = found["shifted", "a"]
    assert (shifted.bits, shifted.margin, shifted.p_value) == (-0.5, 0, 0)
    assert [found[pair].verdict for pair in found] == ["better", "worse", "not told apart", "better"]
    # Two directions are one comparison: the p-value is multiplied by 2, after that of the constant difference.
    assert found["a", "b"].p_value == found["b", "a"].p_value == pytest.approx(2 * t_p_value(30, 8), rel=1e-6)


def test_a_difference_is_told_apart_only_if_it_stands_out_among_all_comparisons() -> None:
    scales, rng = IntervalScales(Scale.of_blocks(50), Scale.of_blocks(50)), np.random.default_rng(0)
    noise = rng.normal(size=(40, 50))
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= noise.std(axis=1, ddof=1, keepdims=True)
    # The difference is 2.5 standard errors: p = 0.016 alone, more than 0.5 among 40.
    blocks = {f"model {index}": row for index, row in enumerate(noise)} | {"zero": np.zeros(50)}
    blocks["model 0"] = noise[0] + 2.5 / math.sqrt(50)
    alone = scales.compare_pairs(blocks, [("model 0", "zero")])
    assert alone["model 0", "zero"].verdict == "worse"
    together = scales.compare_pairs(blocks, [(model, "zero") for model in blocks if model != "zero"])
    assert together["model 0", "zero"].p_value == pytest.approx(40 * alone["model 0", "zero"].p_value)
    assert {difference.verdict for difference in together.values()} == {"not told apart"}


def words(*lengths: int, num_separators: int) -> ScoredText:
    """Return a text of known words, of which the first is not scored."""
    return ScoredText(
        scored_chars=sum(lengths[1:]) + num_separators,
        unknown_costs=np.zeros(len(lengths)),
        ends=np.cumsum(lengths),
        unknown_share=0.0,
    )


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
    text = replace(words(1, 1, 1, num_separators=0), unknown_costs=np.array([9, 0, math.log(2)]))
    assert text.block_bits(np.zeros(2), 2).tolist() == pytest.approx([0, 1])
    # A short text has fewer blocks.
    assert [scored_text(size).num_blocks for size in (0, 19, 20, 999, 1000, 10**6)] == [0, 0, 1, 49, 50, 50]
