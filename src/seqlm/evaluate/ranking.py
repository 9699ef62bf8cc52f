"""All models, the best on test first, compared with the best one, and the best model of each group, chosen on val."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from seqlm.evaluate.mixtures import Texts, predicting_all, predicts_only_words
from seqlm.evaluate.uncertainty import Comparison, Interval, IntervalScales, Pair
from seqlm.heldout.folds import Folds
from seqlm.score.metrics import finite_bits
from seqlm.score.store import Score, val_bits

GROUPS = ("static", "dynamic", "ngram")
"""Of models that have a leader; ``ngram`` has the static n-gram models."""


@dataclass(frozen=True)
class Result:
    """A model's score, how certain it is, and how it compares."""

    score: Score
    interval: Interval
    """Without values if the model gives a token of test no probability, if test is too short, or if the interval would
    reach below 0."""
    to_best: Comparison
    """Without values for the best model on val itself, for models that predict only words, or without finite bits."""
    only_words: bool
    """Whether the model leaves out the separators between words, so that its bits do not compare with others'."""

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

    @property
    def pair(self) -> Pair:
        """The leader and the model that it is compared with."""
        return self.score.name, self.against


def rank_models(
    scores: Sequence[Score], texts: Mapping[str, Texts], folds: Folds | None
) -> tuple[list[Result], dict[str, dict[str, Any] | None]]:
    """Return the results of all models, the best on test first, infinite ones last, and the leader of each group.

    Each model is compared with the best one on val, and each leader with another one, all chosen before test was seen.
    Models that predict only words come after all others, lead no group, and are compared only if there are no others.
    ``texts``: kind of token -> its scored texts.
    """
    ranked = sorted(
        scores, key=lambda score: (predicts_only_words(score), finite_bits(score.metrics["test"]), score.name)
    )
    compared = predicting_all(ranked)
    best, leaders = min(compared, key=val_bits).name, _leaders(compared)
    pairs = [*((score.name, best) for score in compared), *(leader.pair for leader in leaders.values())]
    intervals, comparisons = _compare(ranked, texts, folds, pairs)
    results = {
        (name := score.name): Result(
            score,
            intervals.get(name, (None, None)),
            comparisons.get((name, best), Comparison()),
            predicts_only_words(score),
        )
        for score in ranked
    }
    described = {
        group: _describe(leader, results[leader.score.name], comparisons.get(leader.pair, Comparison()))
        for group, leader in leaders.items()
    }
    return list(results.values()), dict.fromkeys(GROUPS) | described


def _compare(
    scores: Sequence[Score], texts: Mapping[str, Texts], folds: Folds | None, pairs: Collection[Pair]
) -> tuple[dict[str, Interval], dict[Pair, Comparison]]:
    """Return the intervals of models with finite bits, and the comparisons of pairs of them."""
    shortest = min((of_kind["test"] for of_kind in texts.values()), key=lambda text: text.num_blocks)
    scales = IntervalScales.of_text(shortest, folds)
    if scales is None:
        return {}, {}
    blocks = {
        score.name: texts[score.info.token]["test"].block_bits(score.nll["test"], shortest.num_blocks)
        for score in scores
        if score.metrics["test"]["bits_per_character"] is not None
    }
    possible = [pair for pair in pairs if pair[0] != pair[1] and set(pair) <= set(blocks)]
    intervals = {name: scales.of_model.interval(of_model) for name, of_model in blocks.items()}
    return intervals, scales.compare_pairs(blocks, possible)


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
    ci_low, ci_high = result.interval
    return {
        "model": leader.score.name,
        "bits": result.bits("test"),
        "ci_low": ci_low,
        "ci_high": ci_high,
        "perplexity": leader.score.metrics["test"]["perplexity"],
        **asdict(comparison),
        "best_on_test": None if leader.best_on_test is leader.score else leader.best_on_test.name,
        "best_on_test_bits": leader.best_on_test.metrics["test"]["bits_per_character"],
    }
