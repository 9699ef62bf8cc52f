"""How certain bits per character on test are, and the differences between models.

Test is cut into blocks of equally many characters, at the same places for every model. The deviation between a model's
blocks says too little about its value on test, because parts of a text, such as chapters, differ by more than the
blocks within one part show. So intervals are calibrated by reference models, which were cross-validated over parts of
train that are as long as test (:class:`~seqlm.heldout.scored_text.Folds`). The standard error of a model is that of a
reference model, times the ratio of the deviations of their blocks. A 95 % interval is one that contains the mean of the
model over other such parts of the same text in 95 % of cases. It says nothing about another text, or about the same
training from another seed. ``benchmarks/interval_coverage.py`` checks this.

Two models are compared by the differences between their bits on each block (paired t-test), calibrated by the
difference between two reference models. When many pairs are compared, Holm's correction (1979) keeps the probability of
any false verdict below 5 %.

If test was scored in passages spread over it, the blocks are these passages. They are used directly, and an interval
contains the value of all of test.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlm.heldout.folds import Folds
from seqlm.heldout.scored_text import ScoredText

LEVEL = 0.05
"""Share of intervals that miss, and probability of a false verdict."""

Blocks = NDArray[np.float64]
"""Bits per character of one model on each block of test; their mean is the bits per character on test."""
Interval = tuple[float, float]
Pair = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Scale:
    """What turns the deviation between blocks into a standard error."""

    factor: float
    degrees: int
    """Degrees of freedom of the standard error."""

    @classmethod
    def of_blocks(cls, num_blocks: int) -> Self:
        """Return the scale if the blocks are independent."""
        return cls(num_blocks**-0.5, num_blocks - 1)

    @classmethod
    def of_folds(cls, fold_bits: Blocks, blocks: Blocks) -> Self:
        """Return the scale by which the values of folds differ from the mean of the others."""
        if not blocks.std() > 0:  # a text that repeats itself
            return cls.of_blocks(len(blocks))
        between_folds = fold_bits.std(ddof=1) * math.sqrt(1 + 1 / len(fold_bits))
        return cls(float(between_folds / blocks.std(ddof=1)), len(fold_bits) - 1)

    def error(self, blocks: Blocks) -> float:
        """Return the standard error of the mean of some blocks."""
        return self.factor * float(blocks.std(ddof=1))

    def interval(self, blocks: Blocks) -> Interval:
        """Return the 95 % interval of the mean of some blocks."""
        mean, margin = float(blocks.mean()), t_quantile(self.degrees) * self.error(blocks)
        return mean - margin, mean + margin


@dataclass(frozen=True)
class IntervalScales:
    """The scales for single models, and for differences between two models."""

    of_model: Scale
    of_difference: Scale

    @classmethod
    def of_text(cls, text: ScoredText, folds: Folds | None) -> Self | None:
        """Return the scales for a text, None if it is too short; ``folds`` are None if there are none."""
        if text.num_blocks < 2:
            return None
        independent = Scale.of_blocks(text.num_blocks)
        if folds is None or text.share < 1:
            return cls(independent, independent)
        return cls.of_folds(folds, text.num_blocks)

    @classmethod
    def of_folds(cls, folds: Folds, num_blocks: int | None = None) -> Self:
        """Return the scales that two reference models give, for a text of ``num_blocks`` blocks if it is not test.

        The factor for differences has few degrees of freedom, but only corrects a standard error that has many.
        """
        first, second = (np.array(blocks) for blocks in folds.test_blocks)
        num_blocks = num_blocks or len(first)
        independent, ratio = Scale.of_blocks(num_blocks), math.sqrt(len(first) / num_blocks)
        model = Scale.of_folds(np.array(folds.bits[0]), first)
        difference = Scale.of_folds(np.subtract(folds.bits[0], folds.bits[1]), first - second)
        return cls(
            replace(model, factor=model.factor * ratio),
            replace(independent, factor=max(difference.factor * ratio, independent.factor)),
        )

    def compare_pairs(self, blocks: Mapping[str, Blocks], pairs: Iterable[Pair]) -> dict[Pair, "Difference"]:
        """Compare pairs of models; a pair in both directions counts as one comparison."""
        found = {(first, second): self._compare(blocks[first] - blocks[second]) for first, second in pairs}
        corrected = holm({frozenset(pair): difference.p_value for pair, difference in found.items()})
        return {pair: replace(difference, p_value=corrected[frozenset(pair)]) for pair, difference in found.items()}

    def _compare(self, differences: Blocks) -> "Difference":
        mean, error = float(differences.mean()), self.of_difference.error(differences)
        degrees = self.of_difference.degrees
        p_value = t_p_value(mean / error, degrees) if error else float(mean == 0)
        return Difference(mean, t_quantile(degrees) * error, p_value)


@dataclass(frozen=True)
class Difference:
    """Bits per character of one model minus those of another."""

    bits: float
    margin: float
    """Half of the 95 % interval, which is not corrected for other comparisons."""
    p_value: float
    """Corrected for all comparisons that were made together."""

    @property
    def verdict(self) -> str:
        """Whether the first model is "better" or "worse" than the other, or the two are "not told apart"."""
        if self.p_value >= LEVEL:
            return "not told apart"
        return "better" if self.bits < 0 else "worse"


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return p-values that hold for all tests together (Holm 1979), the smallest first."""
    corrected: dict[Key, float] = {}
    largest = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[key]))
        corrected[key] = largest
    return corrected


def t_p_value(t: float, degrees: int) -> float:
    """Return P(|T| >= |t|) of Student's distribution (Abramowitz and Stegun 1964, equations 26.7.3 and 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for n in range(2 + odd, degrees - 1, 2):
        term *= (n - 1) / n * math.cos(angle) ** 2
        total += term
    inside = math.sin(angle) * total
    return max(1 - (2 / math.pi * (angle + inside) if odd else inside), 0.0)


def t_quantile(degrees: int) -> float:
    """Return the t that |T| exceeds with probability :data:`LEVEL`."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_p_value(middle, degrees) > LEVEL else (low, middle)
    return low
