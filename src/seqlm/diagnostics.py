"""What a score hides: how it depends on the context seen, on the kind of character, and on the model's confidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from seqlm.evaluation import Nats
from seqlm.metrics import perplexity
from seqlm.ngrams.models import NGramModel
from seqlm.rnn.building import Model

NUM_POSITIONS = 128
"""Tokens of context over which a model's warm-up is followed."""
_MAX_WINDOWS = 512
_MAX_TOKENS = 5_000
"""Tokens whose whole distributions are looked at."""
_NUM_BINS = 10

CLASSES = ("first letter", "second letter", "later letters", "space or line end", "other")


@dataclass(frozen=True)
class Predictor:
    """What the diagnostics ask of a model, whether it counts or is a network."""

    window_nats: Callable[[NDArray[np.int64]], Nats]
    """From windows ``(B, T)`` to surprisals of their tokens 2..T, ``(B, T - 1)``, each window on its own."""
    distributions: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    """From a stream of N tokens to p of every token at places 2..N, ``(N - 1, V)``."""


def network_predictor(model: Model) -> Predictor:
    """Return a network as a predictor."""

    @torch.no_grad()
    def log_probs(ids: NDArray[np.int64]) -> torch.Tensor:
        tokens = torch.from_numpy(ids).to(next(model.parameters()).device)
        logits, _ = model(tokens[:, :-1], model.initial_state(len(tokens)))
        return torch.log_softmax(logits.double(), -1).cpu()  # (B, T - 1, V)

    def window_nats(windows: NDArray[np.int64]) -> Nats:
        targets = torch.from_numpy(windows[:, 1:, None])
        found: Nats = -log_probs(windows).gather(2, targets)[:, :, 0].numpy()
        return found

    return Predictor(window_nats, lambda ids: log_probs(ids[None])[0].exp().numpy())


def counting_predictor(model: NGramModel) -> Predictor:
    """Return an n-gram model as a predictor."""

    def window_nats(windows: NDArray[np.int64]) -> Nats:
        with np.errstate(divide="ignore"):
            return -np.log(np.stack([model.probs(window) for window in windows]))

    def distributions(ids: NDArray[np.int64]) -> NDArray[np.float64]:
        span = max(model.order - 1, 1)
        return np.stack([model.next_distribution(ids[max(end - span, 0) : end]) for end in range(1, len(ids))])

    return Predictor(window_nats, distributions)


def position_table(predictors: Mapping[str, Predictor], ids: NDArray[np.integer]) -> pd.DataFrame:
    """Return perplexity against the number of tokens of context: columns model, position, perplexity.

    Windows of the text, spread evenly over it, are each read from the zero state;
    position 1 is predicted from one token.
    """
    length = min(NUM_POSITIONS + 1, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, _MAX_WINDOWS).astype(np.int64))
    num_windows = len(starts)
    windows = np.asarray(ids)[starts[:, None] + np.arange(length)].astype(np.int64)
    parts = []
    for name, predictor in predictors.items():
        totals = predictor.window_nats(windows).sum(0)
        values = [perplexity(float(total), num_windows) for total in totals]
        parts.append(pd.DataFrame({"model": name, "position": np.arange(1, length), "perplexity": values}))
    return pd.concat(parts, ignore_index=True)


def class_table(nats: Mapping[str, Nats], text: str) -> pd.DataFrame:
    """Return each model's surprisal by the class of the character: columns model, token_class, share, bits.

    ``text`` has one character a token, ``nats`` belong to characters 2..N; ``share`` is
    the class's part of the text and ``bits`` its mean surprisal.
    """
    classes = character_classes(text)[1:]
    rows = []
    for name, values in nats.items():
        for index, token_class in enumerate(CLASSES):
            of_class = classes == index
            if of_class.any():
                bits = float(values[of_class].mean() / np.log(2))
                rows.append((name, token_class, float(of_class.mean()), bits))
    return pd.DataFrame(rows, columns=["model", "token_class", "share", "bits"])


def character_classes(text: str) -> NDArray[np.int64]:
    """Return the index in :data:`CLASSES` of each character, letters by their place in their word."""
    letters = np.array([character.isalpha() for character in text], bool)
    spaces = np.array([character.isspace() for character in text], bool)
    # Letters in a row since the last character that was none.
    places = np.arange(len(text))
    last_other = np.maximum.accumulate(np.where(letters, -1, places))
    in_word = places - last_other
    return np.where(letters, np.minimum(in_word, 3) - 1, np.where(spaces, 3, 4))


def calibration_table(predictors: Mapping[str, Predictor], ids: NDArray[np.integer]) -> pd.DataFrame:
    """Return how often the likeliest token is right, by the probability it was given.

    Columns model, confidence (the mean in a bin), accuracy, tokens. A calibrated model is
    right as often as it says.
    """
    stream = np.asarray(ids[: _MAX_TOKENS + 1], np.int64)
    parts = []
    for name, predictor in predictors.items():
        probs = predictor.distributions(stream)
        confidence, right = probs.max(1), probs.argmax(1) == stream[1:]
        bins = np.minimum((confidence * _NUM_BINS).astype(int), _NUM_BINS - 1)
        for index in np.unique(bins):
            inside = bins == index
            parts.append((name, float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum())))
    return pd.DataFrame(parts, columns=["model", "confidence", "accuracy", "tokens"])


def calibration_error(table: pd.DataFrame) -> dict[str, float]:
    """Return each model's expected calibration error: the mean distance of confidence and accuracy over tokens."""
    gaps = (table["confidence"] - table["accuracy"]).abs() * table["tokens"]
    sums = gaps.groupby(table["model"], sort=False).sum() / table.groupby("model", sort=False)["tokens"].sum()
    return {str(name): float(value) for name, value in sums.items()}
