"""Tables of what a score hides: how it depends on context, on the class of character, and on confidence."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.score.store import Score

CLASSES = ("first letter", "second letter", "later letters", "space or line end", "other")


def position_table(scores: Sequence[Score]) -> pd.DataFrame:
    """Return perplexity against the number of tokens of context: columns model, position, perplexity."""
    parts = []
    for score in scores:
        values = score.metadata["positions"]
        columns = {"position": np.arange(1, len(values) + 1), "perplexity": values}
        parts.append(pd.DataFrame({"model": score.name} | columns))
    return pd.concat(parts, ignore_index=True)


def calibration_table(scores: Sequence[Score]) -> pd.DataFrame:
    """Return how often the likeliest token is right: columns model, confidence, accuracy, tokens."""
    rows = [(score.name, *row) for score in scores for row in score.metadata["calibration"]]
    return pd.DataFrame(rows, columns=["model", "confidence", "accuracy", "tokens"])


def calibration_error(table: pd.DataFrame) -> dict[str, float]:
    """Return each model's expected calibration error: the mean distance of confidence and accuracy over tokens."""
    gaps = (table["confidence"] - table["accuracy"]).abs() * table["tokens"]
    sums = gaps.groupby(table["model"], sort=False).sum() / table.groupby("model", sort=False)["tokens"].sum()
    return {str(name): float(value) for name, value in sums.items()}


def class_table(nats: Mapping[str, Nats], text: str) -> pd.DataFrame:
    """Return each model's surprisal by the class of the character: columns model, token_class, share, bits.

    ``nats`` are the surprisals of characters 2 to N of the text, including the cost of unknown ones. ``share`` is the
    share of the class in the text, ``bits`` its mean surprisal.
    """
    classes = character_classes(text)[1:]
    rows = []
    for name, values in nats.items():
        for index, token_class in enumerate(CLASSES):
            of_class = classes == index
            if of_class.any():
                bits = float(values[of_class].mean() / math.log(2))
                rows.append((name, token_class, float(of_class.mean()), bits))
    return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])


def character_classes(text: str) -> NDArray[np.int64]:
    """Return the index in :data:`CLASSES` of each character, letters by their position in their word."""
    letters = np.array([character.isalpha() for character in text], bool)
    spaces = np.array([character.isspace() for character in text], bool)
    # The number of consecutive letters up to each character.
    indices = np.arange(len(text))
    last_other = np.maximum.accumulate(np.where(letters, -1, indices))
    in_word = indices - last_other
    return np.where(letters, np.minimum(in_word, 3) - 1, np.where(spaces, 3, 4))
