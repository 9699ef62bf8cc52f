"""The scores of all models: those that are stored, and mixtures of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import Texts, make_mixtures, predicting_all, val_bits
from seqlm.score.metrics import headline
from seqlm.score.store import Score, load_scores
from seqlm.vocab.kinds import KINDS, token_kind


def collect_scores(layout: Layout, runs: Sequence[str], texts: Mapping[str, Texts], mixtures: bool) -> list[Score]:
    """Return the scores of all n-gram models and runs, static before dynamic ones, and of mixtures if asked for.

    ``texts``: kind of token -> its scored texts. Raises DataError if a score is missing or belongs to another text.
    """
    folders = [*map(layout.scores_of_ngrams, KINDS), layout.scores_word_to_char]
    ngrams = [score for folder in folders for score in load_scores(folder)]
    networks = [score for run in runs for score in load_scores(layout.scores_of_run(run))]
    stored = sorted([*ngrams, *networks], key=lambda score: score.info.dynamic)
    for score in stored:
        _require_scores_of(score, texts[score.info.token])
    return [*stored, *make_mixtures(ngrams, networks, texts)] if mixtures else stored


def _require_scores_of(score: Score, texts: Texts) -> None:
    for split, nats in score.nats.items():
        if len(nats) != texts[split].num_scored:
            raise DataError(
                f"{score.name}: {len(nats):,} surprisals on {split}, of which {texts[split].num_scored:,} tokens are "
                "scored: score again"
            )


def choices(scores: Sequence[Score]) -> dict[str, float]:
    """Return what was chosen on val to make each model."""
    return {
        f"{what} in {score.name}": value
        for score in scores
        for what, value in score.metadata.get("choices", {}).items()
    }


def diagnosed(scores: Sequence[Score]) -> list[Score]:
    """Return the models over characters whose diagnostics were stored, the best on val first."""
    found = [score for score in scores if "positions" in score.metadata and token_kind(score.info.token).is_character]
    return sorted(found, key=lambda score: float(score.nats["val"].sum()))


def headlines(scores: Sequence[Score]) -> dict[str, dict[str, Any]]:
    """Return the figures of the best model on val among n-gram models, networks, and dynamic models and mixtures.

    The first two are static. A group without a model has no figures.
    """
    groups: dict[str, list[Score]] = {"ngram": [], "network": [], "combined": []}
    for score in predicting_all(scores):
        is_combined = score.info.dynamic or score.info.family == "mixture"
        groups["combined" if is_combined else score.info.family].append(score)
    return {group: headline(min(members, key=val_bits).metrics) if members else {} for group, members in groups.items()}
