"""All models, the best on test first, compared with each other, and the best model of each group, chosen on val."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from seqlm.evaluate.mixtures import Texts, predicting_all, val_bits
from seqlm.evaluate.uncertainty import Interval, IntervalScales, Pair
from seqlm.heldout.folds import Folds
from seqlm.score.metrics import finite_bits
from seqlm.score.store import Score

GROUPS = ("static", "dynamic", "ngram")
"""Of models that have a leader; ``ngram`` has the static n-gram models."""
DIGITS = 3
"""Digits after the decimal point with which bits per character are printed."""


@dataclass(frozen=True)
class Comparison:
    """How a model compares with another one on test; without values if it is not compared."""

    against: str | None = None
    """The name of the other model."""
    difference: float | None = None
    """Bits per character minus those of the other model."""
    margin: float | None = None
    """Half of the 95 % interval of the difference."""
    verdict: str | None = None
    """That of the difference, or "equal" if the two are told apart but their printed bits are equal."""


@dataclass(frozen=True)
class Result:
    """A model's score, how certain it is, and how it compares."""

    score: Score
    interval: Interval | tuple[None, None]
    """Without values if the model gives a token of test no probability, or if test is too short."""
    to_best: Comparison
    """Without values for the best model on val itself, or if one of the two has no interval."""
    to_next: Comparison

    def bits(self, split: str) -> float | None:
        """Return bits per character on a split, if the model was scored on it and they are finite."""
        value: float | None = self.score.metrics.get(split, {}).get("bits_per_character")
        return value


class Leader(NamedTuple):
    """The best model of a group on val."""

    score: Score
    against: str
    """The model that it is compared with; "" if there is none."""
    best_on_test: Score
    """The best model of the group on test, often the same."""


def rank_models(
    scores: Sequence[Score], texts: Mapping[str, Texts], folds: Folds | None
) -> tuple[list[Result], dict[str, dict[str, Any] | None]]:
    """Return the results of all models, the best on test first, infinite ones last, and the leader of each group.

    Each model is compared with the best one on val and with the next one on test, and leaders are compared too.
    Models over words that need not predict separators are no leaders. Verdicts hold for all comparisons together.
    ``texts``: kind of token -> its scored texts.
    """
    ranked = sorted(scores, key=lambda score: (finite_bits(score.metrics["test"]), score.name))
    names = [score.name for score in ranked]
    best, following = min(predicting_all(ranked), key=val_bits).name, [*names[1:], ""]
    leaders = _leaders(predicting_all(ranked))
    of_leaders = {group: (leader.score.name, leader.against) for group, leader in leaders.items()}
    pairs = [*((name, best) for name in names), *pairwise(names), *of_leaders.values()]
    intervals, comparisons = _compare(ranked, texts, folds, pairs)

    def compared(pair: Pair) -> Comparison:
        return comparisons.get(pair, Comparison())

    results = {
        name: Result(score, intervals.get(name, (None, None)), compared((name, best)), compared((name, after)))
        for score, name, after in zip(ranked, names, following, strict=True)
    }
    described = {
        group: _describe(leader, results[leader.score.name], compared(of_leaders[group]))
        for group, leader in leaders.items()
    }
    return list(results.values()), dict.fromkeys(GROUPS) | described


def _compare(
    scores: Sequence[Score], texts: Mapping[str, Texts], folds: Folds | None, pairs: Iterable[Pair]
) -> tuple[dict[str, Interval], dict[Pair, Comparison]]:
    """Return the intervals of models with finite bits, and the comparisons of pairs of them."""
    shortest = min((of_kind["test"] for of_kind in texts.values()), key=lambda text: text.num_blocks)
    scales = IntervalScales.of_text(shortest, folds)
    if scales is None:
        return {}, {}
    bits = {score.name: score.metrics["test"]["bits_per_character"] for score in scores}
    blocks = {
        score.name: texts[score.info.token]["test"].block_bits(score.nll["test"], shortest.num_blocks)
        for score in scores
        if bits[score.name] is not None
    }
    possible = [pair for pair in pairs if pair[0] != pair[1] and set(pair) <= set(blocks)]
    differences = scales.compare_pairs(blocks, possible)
    comparisons = {}
    for (name, other), difference in differences.items():
        is_printed_equal = f"{bits[name]:.{DIGITS}f}" == f"{bits[other]:.{DIGITS}f}"
        verdict = "equal" if is_printed_equal and difference.verdict != "not told apart" else difference.verdict
        comparisons[name, other] = Comparison(other, difference.bits, difference.margin, verdict)
    return {name: scales.of_model.interval(of_model) for name, of_model in blocks.items()}, comparisons


def _leaders(ranked: Sequence[Score]) -> dict[str, Leader]:
    """Return the best model on val of each group that has one; ``ranked`` has the best model on test first.

    The static one is compared with the second best on val, the others with the best static model.
    """
    static = [score for score in ranked if not score.info.dynamic]
    dynamic = [score for score in ranked if score.info.dynamic]
    ngrams = [score for score in static if score.info.family == "ngram"]
    first, second = [*(score.name for score in sorted(static, key=val_bits)), "", ""][:2]
    leaders = {}
    for group, members in zip(GROUPS, (static, dynamic, ngrams), strict=True):
        if members:
            leader = min(members, key=val_bits)
            leaders[group] = Leader(leader, second if leader.name == first else first, members[0])
    return leaders


def _describe(leader: Leader, result: Result, comparison: Comparison) -> dict[str, Any]:
    """Return a leader as plain values."""
    low, high = result.interval
    return {
        "model": leader.score.name,
        "bits": result.bits("test"),
        "ci_low": low,
        "ci_high": high,
        "perplexity": leader.score.metrics["test"]["perplexity"],
        **asdict(comparison),
        "best_on_test": None if leader.best_on_test is leader.score else leader.best_on_test.name,
        "best_on_test_bits": leader.best_on_test.metrics["test"]["bits_per_character"],
    }
