"""The main table, table.csv: all models, the best one first, and how each compares with it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from seqlm.models.scored_text import Stream
from seqlm.pipeline.evaluate.names import display_names
from seqlm.pipeline.evaluate.uncertainty import Comparison, Interval, error_models
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import TRAIN_SUBSET, Scores, val_bits


class Row(NamedTuple):
    """A row of the main table; infinite values are missing, and so is what does not apply to a
    model."""

    model: str
    """Identifier: what is typed, and what files are called."""
    label: str
    """A readable name, which says what the model is."""
    family: str
    """ngram, network or mixture."""
    token: str
    """Kind of token that the model predicts."""
    counted_token: str | None
    """N-gram models: kind of token whose n-grams are counted."""
    smoothing: str | None
    """N-gram models: smoothing method."""
    order: int | None
    """N-gram models: order, 0 for the uniform distribution."""
    network: str | None
    """Networks: kind of network."""
    run: str | None
    """Networks: the run."""
    as_in_chapter: bool
    """Networks: whether all settings are those of sections 8.5 and 8.6."""
    epoch: str | None
    """Networks: whether the weights are the last ones, or those that were best on val."""
    dynamic: bool
    """Whether the model keeps learning from the text that it predicts. Such rows come after the
    others."""
    members: str | None
    """Mixtures: the members, separated by spaces. Dynamic models: the static one."""
    test_bits: float
    """Bits per character on test; infinite if a token has probability zero."""
    ci_low: float | None
    """Lower end of the 95 % interval of test_bits; none if it would be below 0."""
    ci_high: float | None
    """Upper end of the 95 % interval of test_bits."""
    best_difference: float | None
    """Bits per character on test minus those of the best model, which is in the first row."""
    best_margin: float | None
    """Half-width of the simultaneous 95 % confidence interval of best_difference."""
    best_verdict: str | None
    """Whether the model is better or worse than the best model, or the difference is not
    significant."""
    val_bits: float
    """Bits per character on val; marked ^ if the model has chosen_on_val."""
    chosen_on_val: bool
    """Whether settings, weights or the epoch of the model were chosen on val, so that it looks
    better there than it is."""
    train_bits: float
    """Bits per character on all of train."""
    seen_bits: float
    """Bits per character on the text that the model was trained on, measured after training."""
    train_chars: int
    """Characters of train that the model saw."""
    test_perplexity: float
    """Perplexity on test, per token of the model's own kind."""
    unknown_share: float
    """Share of test tokens not in the vocabulary."""


def table_row(score: Scores, label: str, interval: Interval, vs_best: Comparison) -> Row:
    """Return the row of a model."""
    info, test = score.info, score.metrics["test"]
    properties: dict[str, Any] = {
        name: getattr(info, name) for name in Row._fields if hasattr(info, name)
    }
    return Row(
        **properties | {"members": " ".join(info.members) or None},
        model=info.name,
        label=label,
        test_bits=score.bits("test"),
        **interval._asdict(),
        **vs_best._asdict(),
        val_bits=score.bits("val"),
        train_bits=score.bits("train"),
        seen_bits=score.bits(TRAIN_SUBSET if TRAIN_SUBSET in score.metrics else "train"),
        test_perplexity=test["perplexity"],
        unknown_share=test["unknown_share"],
    )


def main_table(
    scores: Sequence[Scores], texts: Mapping[str, Mapping[str, Stream]], folds: Folds | None
) -> pd.DataFrame:
    """Return the rows of all models: the best one, then the others by their bits on test.

    The best one is that on val among those that stay as they were trained, so it was chosen before
    test was seen. Each model is compared with it. Models that keep learning come after those that
    do not. ``texts``: kind of token -> its scored texts. An interval and a comparison are missing
    if test is too short, or if a model gives a token of test no probability.
    """
    best = min(
        (score for score in scores if not score.info.dynamic),
        key=lambda score: (val_bits(score), score.name),
    )
    labels = display_names([score.info for score in scores])
    tests = {token: streams["test"] for token, streams in texts.items()}
    shortest = min(tests.values(), key=lambda text: text.num_blocks)
    errors = error_models(shortest, folds)
    blocks = {
        score.name: tests[score.info.token].block_bits(score.nll["test"], shortest.num_blocks)
        for score in scores
        if errors and math.isfinite(score.bits("test"))
    }
    rows = []
    for score in sorted(
        scores,
        key=lambda score: (score.info.dynamic, score is not best, score.bits("test"), score.name),
    ):
        interval, vs_best = Interval(), Comparison()
        if errors and score.name in blocks:
            interval = errors.models.interval(blocks[score.name])
            if score is not best and best.name in blocks:
                difference = blocks[score.name] - blocks[best.name]
                vs_best = errors.differences.compare(difference, len(blocks) - 1)
        rows.append(table_row(score, labels[score.name], interval, vs_best))
    return pd.DataFrame(rows).astype({"order": "Int64"}).replace(math.inf, math.nan)
