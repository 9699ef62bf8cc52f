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
from seqlm.pipeline.score.excerpts import passage
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import HELD_OUT, Scores, val_bits
from seqlm.vocab.kinds import token_kind

CLASSES = ("first letter", "second letter", "later letters", "space", "other")
PASSAGE_CHARS = 1500
"""Characters of test that the page shows with their surprisals."""
MAX_PASSAGES = 16
"""Models under which the page shows a passage."""


def all_histories(layout: Layout, runs: Sequence[str]) -> pd.DataFrame:
    """Return the runs' histories as one table. Raises DataError if one is missing."""
    paths = [layout.reports("train", run, "history.csv") for run in runs]
    return pd.concat(map(read_csv, paths), ignore_index=True)


def order_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return bits per character on test of the static n-gram models of all of train, from the main
    table.

    Columns token, smoothing, order, bits_per_character.
    """
    shown = table[
        (table["counted_token"] == table["token"])
        & (table["order"] > 0)
        & (table["train_chars"] == table["train_chars"].max())
        & ~table["dynamic"]
    ]
    columns = ["token", "smoothing", "order"]
    rows = shown.sort_values(columns, ignore_index=True)[[*columns, "test_bits"]]
    return rows.rename(columns={"test_bits": "bits_per_character"})


def position_table(scores: Sequence[Scores]) -> pd.DataFrame:
    """Return perplexity against the number of tokens of context: columns model, position,
    perplexity."""
    rows = [
        (score.name, position, perplexity)
        for score in scores
        for position, perplexity in enumerate(score.metadata["positions"], start=1)
    ]
    return pd.DataFrame(rows, columns=["model", "position", "perplexity"])


def class_table(scores: Sequence[Scores], heldout: Heldout) -> pd.DataFrame:
    """Return each model's surprisal by the class of the character: columns model, token_class,
    share, bits.

    ``scores`` are those of character-level models; ``heldout`` is the text that they were scored
    on. ``share`` is the share of the class in test, ``bits`` its mean surprisal, including the cost
    of unknown characters.
    """
    test, text = heldout.stream("test"), "".join(heldout.test_tokens)
    names = [
        f"{name} or line end" if name == "space" and "\n" in text else name for name in CLASSES
    ]
    classes = pd.Categorical.from_codes(character_classes(text)[1:], names)
    tables = {
        score.name: pd.Series(test.add_spelling_cost(score.nll["test"]) / math.log(2))
        .groupby(classes, observed=True)
        .agg(["size", "mean"])
        for score in scores
    }
    table = pd.concat(tables, names=["model", "token_class"]).reset_index()
    table.insert(2, "share", table.pop("size") / len(classes))
    return table.rename(columns={"mean": "bits"})


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
    scores: Sequence[Scores], heldouts: Mapping[str, Heldout]
) -> dict[str, dict[str, Any]]:
    """Return the beginning of test with the surprisal of each token, under n-gram models, networks
    and mixtures.

    Of the n-gram models, the best static one on val of each kind is shown. Dynamic models come
    after static ones.
    """
    ngrams: dict[tuple[str, str | None], Scores] = {}
    others = []
    for score in sorted(scores, key=_static_first):
        if score.info.family != "ngram":
            others.append(score)
        elif not score.info.dynamic:
            ngrams.setdefault((score.info.token, score.info.counted_token), score)
    shown = [*ngrams.values(), *others][:MAX_PASSAGES]
    excerpts = {}
    for score in sorted(shown, key=_static_first):
        heldout = heldouts[score.info.token]
        nll = heldout.stream("test").add_spelling_cost(score.nll["test"])
        kind = token_kind(score.info.token)
        excerpts[score.name] = passage(kind, heldout.test_tokens, nll, PASSAGE_CHARS)
    return excerpts


def _static_first(score: Scores) -> tuple[bool, float]:
    return score.info.dynamic, val_bits(score)


def choices(scores: Sequence[Scores]) -> dict[str, float]:
    """Return what was chosen on val to make each model."""
    values: dict[str, float] = {}
    for score in scores:
        chosen = score.metadata.get("choices", {})
        weights = score.metadata.get("weights", {})
        values |= {f"{setting} in {score.name}": chosen[setting] for setting in chosen}
        values |= {f"weight of {member} in {score.name}": weights[member] for member in weights}
    return values


def diagnosed(scores: Sequence[Scores]) -> list[Scores]:
    """Return the character-level networks and the best n-gram model on val, the best on val
    first."""
    candidates = sorted((score for score in scores if "positions" in score.metadata), key=val_bits)
    ngrams = [score for score in candidates if score.info.family == "ngram"]
    return [score for score in candidates if score not in ngrams[1:]]


def headlines(scores: Sequence[Scores], runs: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return the bits per character on val and test that experiments are compared by.

    They are those of the best mixture, network, n-gram model and dynamic model on val, and of each
    run. A group without a model is missing.
    """
    best: dict[str, Scores] = {}
    for score in sorted(scores, key=val_bits):
        group = "dynamic" if score.info.dynamic else score.info.family
        best.setdefault(f"best-{group}", score)
    shown = dict(sorted(best.items()))
    shown |= {score.name: score for score in scores if score.name in runs}
    return {
        split: {name: score.metrics[split]["bits_per_character"] for name, score in shown.items()}
        for split in HELD_OUT
    }
