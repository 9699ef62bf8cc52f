"""How surprisal depends on the amount of context."""

from typing import Any

import numpy as np

from seqlm.core.metrics import perplexity
from seqlm.models.language_model import LanguageModel
from seqlm.models.scored_text import Ids

NUM_POSITIONS = 128
"""Positions after the beginning of a text for which a model's perplexity is reported."""
MAX_WINDOWS = 512
"""Windows of the text over which it is measured."""


def context_metadata(model: LanguageModel, ids: Ids) -> dict[str, Any]:
    """Return the perplexity by position of a model over characters; nothing for other models."""
    if not model.vocab.token_kind.is_character:
        return {}
    return {"positions": perplexity_by_position(model, ids)}


def perplexity_by_position(model: LanguageModel, ids: Ids) -> list[float | None]:
    """Return perplexity by the number of tokens of context, from one token on; None if it is infinite.

    Evenly spaced windows of the text are each read as a text of their own.
    """
    length = min(NUM_POSITIONS + 1, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, MAX_WINDOWS).astype(np.int64))
    windows = np.asarray(ids)[starts[:, None] + np.arange(length)].astype(np.int64)
    values = [perplexity(float(total), len(starts)) for total in np.stack(model.texts_nll(list(windows))).sum(0)]
    return [value if np.isfinite(value) else None for value in values]
