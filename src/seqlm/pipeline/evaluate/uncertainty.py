"""How certain bits per character on test are, and whether two models differ.

Test is cut into blocks of equally many characters, at the same places for every model. Parts of a
text, such as chapters, differ by more than the blocks within one part show. So two reference models
were cross-validated over parts of train that are as long as test
(:class:`~seqlm.pipeline.score.ngrams.Folds`). The deviation of a model between parts is estimated
by that of its blocks on test, times the ratio of the two for a reference model. For a difference
between two models, it is the ratio for the difference between the reference models.

**Interval.** On another passage of this text, as long as test, the score should fall inside the
interval 95 times out of 100. The difference between two passages has twice the variance of one.

**Verdict.** A difference is significant if it exceeds its margin. The margins of all comparisons
have one critical value (:func:`critical_value`). A verdict claims the sign of the mean difference
over the whole text, not that the margin contains it: the ratio of the reference models does not
hold for every model, least of all for those with large differences. ``benchmarks/intervals.py``
checks on three texts how often both are right.

Neither says anything about another text, or about the same training from another seed.

If test was scored in passages spread over it, these are its blocks, and there are no reference
models: the interval is that of fifty other passages.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.models.scored_text import Stream
from seqlm.pipeline.score.ngrams import Folds

LEVEL = 0.05
"""Share of intervals meant to miss; the family-wise error rate of the verdicts on a text."""

Blocks = NDArray[np.float64]
"""Bits per character of one model on each block of test; their mean is the bits per character on
test."""


class Interval(NamedTuple):
    """The 95 % interval of a model; without values if there is none."""

    ci_low: float | None = None
    ci_high: float | None = None


class Comparison(NamedTuple):
    """How a model compares with the best one on test; without values if it is not compared."""

    best_difference: float | None = None
    """Bits per character minus those of the best model."""
    best_margin: float | None = None
    """What the difference must exceed to be significant."""
    best_verdict: str | None = None
    """"better" or "worse" if the difference exceeds its margin, otherwise "not significant"."""


@dataclass(frozen=True)
class ErrorModel:
    """What turns the deviation between blocks into a standard error."""

    factor: float
    degrees: int
    """Degrees of freedom of the deviation between blocks: half their number, because neighbours are
    alike."""
    fold_degrees: int | None = None
    """Degrees of freedom of the deviation between folds; None if no text was cut into folds."""

    @classmethod
    def of_blocks(cls, num_blocks: int) -> Self:
        """The error model of independent blocks."""
        return cls(num_blocks**-0.5, num_blocks // 2)

    @classmethod
    def of_folds(cls, fold_bits: Blocks, blocks: Blocks, num_blocks: int) -> Self:
        """The error model of a text of ``num_blocks`` blocks, from how much a reference model
        differs between folds, and between ``blocks`` of a text."""
        if not blocks.std() > 0:  # a text that repeats itself
            return cls.of_blocks(num_blocks)
        ratio = float(fold_bits.std(ddof=1) / blocks.std(ddof=1))
        factor = ratio * math.sqrt(len(blocks) / num_blocks)
        return cls(factor, min(len(blocks), num_blocks) // 2, len(fold_bits) - 1)

    def margin(self, blocks: Blocks, num_comparisons: int = 1) -> float:
        """Return what a mean of blocks must exceed to differ from 0, if ``num_comparisons`` means
        are compared."""
        critical = critical_value(num_comparisons, self.degrees, self.fold_degrees)
        return critical * self.factor * float(blocks.std(ddof=1))

    def interval(self, blocks: Blocks) -> Interval:
        """Return the 95 % interval for another passage, without values if it would reach below
        0."""
        # The difference of two passages has twice the variance of one.
        mean, margin = float(blocks.mean()), math.sqrt(2) * self.margin(blocks)
        return Interval(mean - margin, mean + margin) if margin <= mean else Interval()

    def compare(self, differences: Blocks, num_comparisons: int) -> Comparison:
        """Return what a model's differences from the best one show, if this is one of
        ``num_comparisons``."""
        mean, margin = float(differences.mean()), self.margin(differences, num_comparisons)
        verdict = "better" if mean < 0 else "worse"
        return Comparison(mean, margin, verdict if abs(mean) > margin else "not significant")


class ErrorModels(NamedTuple):
    """The error models of bits per character, and of differences between two models."""

    models: ErrorModel
    differences: ErrorModel


def calibrated(folds: Folds, num_blocks: int) -> ErrorModels:
    """Return the error models that two reference models give for a text of ``num_blocks``
    blocks."""
    bits, blocks = np.array(folds.bits), np.array(folds.test_blocks)
    return ErrorModels(
        ErrorModel.of_folds(bits[0], blocks[0], num_blocks),
        ErrorModel.of_folds(bits[0] - bits[1], blocks[0] - blocks[1], num_blocks),
    )


def error_models(text: Stream, folds: Folds | None) -> ErrorModels | None:
    """Return the error models for a text; None if it is too short."""
    if text.num_blocks < 2:
        return None
    if folds is None or text.share < 1:
        return ErrorModels(*[ErrorModel.of_blocks(text.num_blocks)] * 2)
    return calibrated(folds, text.num_blocks)


@cache
def critical_value(num_comparisons: int, degrees: int, fold_degrees: int | None = None) -> float:
    """Return how many standard errors wide the margins of simultaneous comparisons are.

    Each comparison has its own deviation between blocks, with ``degrees`` degrees of freedom. If
    the errors of all are scaled by one factor, the square of this factor has an F distribution,
    with those degrees and ``fold_degrees``. For a given factor, intervals of correlated differences
    are all right at least as often as independent ones (Sidak 1967). So this is the c at which P(-c
    factor < T < c factor) to the power of ``num_comparisons``, averaged over all factors, is 95 %;
    T has Student's distribution.
    """
    factors, weights = np.ones(1), np.ones(1)
    if fold_degrees is not None:
        logs = np.linspace(-20, 20, 401)
        falling = np.log1p(np.exp(logs) * fold_degrees / degrees) * (fold_degrees + degrees)
        weights = np.exp((logs * fold_degrees - falling) / 2)
        factors, weights = np.exp(logs / 2), weights / weights.sum()
    low, high = 0.0, 1e5
    for _ in range(60):
        middle = (low + high) / 2
        all_right = float(
            np.sum(weights * student_inside(middle * factors, degrees) ** num_comparisons)
        )
        low, high = (middle, high) if all_right < 1 - LEVEL else (low, middle)
    return low


def student_inside(t: Blocks, degrees: int) -> Blocks:
    """Return P(|T| < t) of Student's distribution (Abramowitz and Stegun 1964, equations 26.7.3 and
    26.7.4)."""
    angle = np.arctan(t / math.sqrt(degrees))
    odd = degrees % 2
    term = np.cos(angle) if odd else np.ones_like(angle)
    total = term * (degrees > 1)
    for n in range(2 + odd, degrees - 1, 2):
        term = term * (n - 1) / n * np.cos(angle) ** 2
        total = total + term
    inside = np.sin(angle) * total
    return np.asarray(2 / math.pi * (angle + inside) if odd else inside)
