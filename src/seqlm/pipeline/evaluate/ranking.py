"""All models, the best one first, and how each compares with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqlm.models.scored_text import Stream, bits_or_infinity
from seqlm.pipeline.evaluate.names import display_names
from seqlm.pipeline.evaluate.uncertainty import Comparison, Interval, scales_of_text
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import Scores, val_bits


@dataclass(frozen=True)
class Result:
    """A model's scores, how certain they are, and how it compares."""

    scores: Scores
    interval: Interval
    """Without values if the model gives a token of test no probability, if test is too short, or if
    the interval would reach below 0."""
    vs_best: Comparison
    """Without values for the best model itself, and for models without finite bits."""
    label: str
    """The name that people read (:func:`seqlm.pipeline.evaluate.names.display_names`)."""

    def bits(self, split: str) -> float | None:
        """Return bits per character on a split, if the model was scored on it and they are
        finite."""
        value: float | None = self.scores.metrics.get(split, {}).get("bits_per_character")
        return value


def rank_models(
    scores: Sequence[Scores], texts: Mapping[str, Mapping[str, Stream]], folds: Folds | None
) -> list[Result]:
    """Return the results of all models: the best one, then the others by their bits on test.

    The best one is that on val among those that stay as they were trained, so it was chosen before
    test was seen. Each model is compared with it. Models that keep learning come after those that
    do not. ``texts``: kind of token -> its scored texts.
    """
    static = [each for each in scores if not each.info.dynamic]
    best = min(static, key=lambda each: (val_bits(each), each.name))
    labels = display_names([each.info for each in scores])

    def place(each: Scores) -> tuple[bool, bool, float, str]:
        return (
            each.info.dynamic,
            each is not best,
            bits_or_infinity(each.metrics["test"]),
            each.name,
        )

    shortest = min(
        (of_kind["test"] for of_kind in texts.values()), key=lambda text: text.num_blocks
    )
    scales = scales_of_text(shortest, folds)
    blocks = {
        each.name: texts[each.info.token]["test"].block_bits(each.nll["test"], shortest.num_blocks)
        for each in scores
        if scales and each.metrics["test"]["bits_per_character"] is not None
    }

    def result(each: Scores) -> Result:
        interval: Interval = None, None
        vs_best = Comparison()
        if scales and each.name in blocks:
            interval = scales.models.interval(blocks[each.name])
            if each is not best and best.name in blocks:
                vs_best = scales.differences.compare(
                    blocks[each.name] - blocks[best.name], len(blocks) - 1
                )
        return Result(each, interval, vs_best, labels[each.name])

    return [result(each) for each in sorted(scores, key=place)]
