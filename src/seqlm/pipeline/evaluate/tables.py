"""The tables besides the main one, and the passages that the page shows.

Some tables show what a score hides: how it depends on context and on the class of character.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.core.files import read_csv
from seqlm.core.layout import Layout
from seqlm.pipeline.evaluate.ranking import Result
from seqlm.pipeline.score.excerpts import passage
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import TRAIN_SUBSET, Scores, val_bits
from seqlm.vocab.kinds import token_kind

CLASSES = ("first letter", "second letter", "later letters", "space", "other")
PASSAGE_CHARS = 1500
"""Characters of test that the page shows with their surprisals."""
MAX_PASSAGES = 16
"""Models under which the page shows a passage."""


def all_histories(layout: Layout, runs: Sequence[str]) -> pd.DataFrame:
    """Return the runs' histories as one table. Raises DataError if one is missing."""
    return pd.concat(
        [read_csv(layout.reports("train", run, "history.csv")) for run in runs], ignore_index=True
    )


def order_table(results: Sequence[Result]) -> pd.DataFrame:
    """Return bits per character on test of the static n-gram models of all of train.

    Columns token, smoothing, order, bits_per_character.
    """
    infos = [
        (r.scores.info, r.bits("test")) for r in results if TRAIN_SUBSET not in r.scores.metrics
    ]
    rows = [
        (info.token, info.smoothing, info.order, bits)
        for info, bits in infos
        if info.counts_own_tokens and info.order and not info.dynamic
    ]
    table = pd.DataFrame(rows, columns=["token", "smoothing", "order", "bits_per_character"])
    return table.sort_values(["token", "smoothing", "order"], ignore_index=True)


def position_table(scores: Sequence[Scores]) -> pd.DataFrame:
    """Return perplexity against the number of tokens of context: columns model, position,
    perplexity."""
    rows = [
        (score.name, *row)
        for score in scores
        for row in enumerate(score.metadata["positions"], start=1)
    ]
    return pd.DataFrame(rows, columns=["model", "position", "perplexity"])


def class_table(scores: Sequence[Scores], heldout: Heldout) -> pd.DataFrame:
    """Return each model's surprisal by the class of the character: columns model, token_class,
    share, bits.

    ``scores`` are those of models over characters; ``heldout`` is the text that they were scored
    on. ``share`` is the share of the class in test, ``bits`` its mean surprisal, including the cost
    of unknown characters.
    """
    test, text = heldout.stream("test"), "".join(heldout.test_tokens())
    classes = character_classes(text)[1:]
    names = [
        f"{name} or line end" if name == "space" and "\n" in text else name for name in CLASSES
    ]
    masks = {names[index]: classes == index for index in np.unique(classes)}
    rows = []
    for score in scores:
        nll = test.add_spelling_cost(score.nll["test"])
        of_class = [
            (name, float(mask.mean()), float(nll[mask].mean() / math.log(2)))
            for name, mask in masks.items()
        ]
        rows += [(score.name, *row) for row in of_class]
    return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])


def character_classes(text: str) -> NDArray[np.int64]:
    """Return the index in :data:`CLASSES` of each character, letters by their position in their
    word."""
    letters = np.array([character.isalpha() for character in text], bool)
    spaces = np.array([character.isspace() for character in text], bool)
    # The number of consecutive letters up to each character.
    indices = np.arange(len(text))
    last_other = np.maximum.accumulate(np.where(letters, -1, indices))
    in_word = indices - last_other
    return np.where(letters, np.minimum(in_word, 3) - 1, np.where(spaces, 3, 4))


def passages(
    results: Sequence[Result], heldouts: Mapping[str, Heldout]
) -> dict[str, dict[str, Any]]:
    """Return the beginning of test with the surprisal of each token, under n-gram models, networks
    and mixtures.

    Of the n-gram models, the best static one on val of each kind is shown. ``results`` have the
    best model first. Models that keep learning come after static ones.
    """
    scores, best = [result.scores for result in results], dict[tuple[str, str | None], Scores]()
    for each in sorted(
        (s for s in scores if s.info.family == "ngram" and not s.info.dynamic), key=val_bits
    ):
        best.setdefault((each.info.token, each.info.counted_token), each)
    others = [each for each in scores if each.info.family != "ngram"][: MAX_PASSAGES - len(best)]
    tokens = {kind: heldout.test_tokens() for kind, heldout in heldouts.items()}
    found = {}
    for each in sorted(
        [*others, *best.values()], key=lambda each: (each.info.dynamic, val_bits(each))
    ):
        token = each.info.token
        nll = heldouts[token].stream("test").add_spelling_cost(each.nll["test"])
        found[each.name] = passage(token_kind(token), tokens[token], nll, PASSAGE_CHARS)
    return found


def choices(scores: Sequence[Scores]) -> dict[str, float]:
    """Return what was chosen on val to make each model."""
    found = dict[str, float]()
    for score in scores:
        found |= {
            f"{what} in {score.name}": value
            for what, value in score.metadata.get("choices", {}).items()
        }
        weights = score.metadata.get("weights", {}).items()
        found |= {f"weight of {member} in {score.name}": value for member, value in weights}
    return found


def diagnosed(scores: Sequence[Scores]) -> list[Scores]:
    """Return the networks over characters and the best n-gram model on val, the best on val
    first."""
    found = sorted((score for score in scores if "positions" in score.metadata), key=val_bits)
    ngrams = [score for score in found if score.info.family == "ngram"]
    return [score for score in found if score not in ngrams[1:]]


def headlines(scores: Sequence[Scores], runs: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return the bits per character on val and test that experiments are compared by.

    They are those of the best mixture, network, n-gram model and dynamic model on val, and of each
    run. A group without a model is missing.
    """
    best: dict[str, Scores] = {}
    for score in sorted(scores, key=val_bits):
        best.setdefault(
            "best-dynamic" if score.info.dynamic else f"best-{score.info.family}", score
        )
    shown = dict(sorted(best.items())) | {
        score.name: score for score in scores if score.name in runs
    }
    return {
        split: {name: each.metrics[split]["bits_per_character"] for name, each in shown.items()}
        for split in ("val", "test")
    }
