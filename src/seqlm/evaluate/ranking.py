"""All models, the best one first, and how each compares with it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from seqlm.evaluate.mixtures import Texts, predicting_all, predicts_only_words
from seqlm.evaluate.uncertainty import Comparison, Interval, IntervalScales, Pair
from seqlm.heldout.folds import Folds
from seqlm.score.metrics import finite_bits
from seqlm.score.model_info import ModelInfo, display_names
from seqlm.score.store import Score, val_bits


@dataclass(frozen=True)
class Result:
    """A model's score, how certain it is, and how it compares."""

    score: Score
    interval: Interval
    """Without values if the model gives a token of test no probability, if test is too short, or if the interval would
    reach below 0."""
    to_best: Comparison
    """Without values for the best model itself, for models that predict only words, or without finite bits."""
    only_words: bool
    """Whether the model leaves out the separators between words, so that its bits do not compare with others'."""
    label: str
    """The name that people read (:func:`seqlm.score.model_info.display_names`)."""
    phrase: str
    """The same in sentences."""

    def bits(self, split: str) -> float | None:
        """Return bits per character on a split, if the model was scored on it and they are finite."""
        value: float | None = self.score.metrics.get(split, {}).get("bits_per_character")
        return value


def best_model(scores: Sequence[Score]) -> Score:
    """Return the best model on val among those that predict every character and stay as they were trained.

    Other models are considered only if there is none of these.
    """
    compared = predicting_all(scores)
    static = [score for score in compared if not score.info.dynamic]
    return min(static or compared, key=lambda score: (val_bits(score), score.name))


def rank_models(
    scores: Sequence[Score], texts: Mapping[str, Texts], folds: Folds | None, members: Iterable[ModelInfo] = ()
) -> list[Result]:
    """Return the results of all models: the best one (:func:`best_model`), then the others by their bits on test.

    Models that keep learning come after those that do not, and models that predict only words after all others. Each
    model is compared with the best one, which was chosen before test was seen; models that predict only words are
    compared only if there are no others. ``texts``: kind of token -> its scored texts. ``members``: those of mixtures
    that have no score of their own.
    """
    best, infos = best_model(scores), [*(score.info for score in scores), *members]
    labels, phrases = display_names(infos), display_names(infos, in_sentences=True)

    def place(score: Score) -> tuple[bool, bool, bool, float, str]:
        is_other = score is not best
        return predicts_only_words(score), score.info.dynamic, is_other, finite_bits(score.metrics["test"]), score.name

    ranked = sorted(scores, key=place)
    intervals, comparisons = _compare(
        ranked, texts, folds, [(score.name, best.name) for score in predicting_all(ranked)]
    )
    return [
        Result(
            score,
            intervals.get(score.name, (None, None)),
            comparisons.get((score.name, best.name), Comparison()),
            predicts_only_words(score),
            labels[score.name],
            phrases[score.name],
        )
        for score in ranked
    ]


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
