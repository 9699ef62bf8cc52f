"""Continuing prefixes with an n-gram model."""

from collections.abc import Sequence

import numpy as np

from seqlm.core.elementary import exp, log
from seqlm.ngrams.models.base import NGramModel


def sample_ngrams(
    model: NGramModel, prefix: Sequence[int], num_preds: int, temperature: float, rng: np.random.Generator
) -> list[int]:
    """Return ``num_preds`` tokens that an n-gram model generates after a prefix; never ``<unk>``.

    With ``temperature`` 0 the most likely token is chosen; otherwise tokens are drawn from q proportional to p to the
    power 1 / temperature.
    """
    tokens = list(prefix)
    for _ in range(num_preds):
        probs = model.next_distribution(np.array(tokens[-max(model.order - 1, 1) :], np.int64)).copy()
        probs[0] = 0
        if temperature == 0:
            tokens.append(int(np.argmax(probs)))
            continue
        logs = log(probs)
        with np.errstate(over="ignore"):
            weights = exp((logs - logs.max()) / temperature)
        tokens.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return tokens[len(prefix) :]
