"""Choosing the next token from a distribution."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp, log

_COLDEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class SamplingConfig:
    """How a token is chosen.

    With ``temperature`` 0 it is the most likely one; otherwise it is drawn from q proportional to p to the power
    1 / temperature (exercise 8.5-3 with alpha = 1 / temperature). ``top_k`` keeps the k most likely tokens; ``top_p``
    keeps the smallest set of most likely tokens that has this much probability (nucleus).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def pick(self, probs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return one token for each row of ``probs`` (B, V), shape ``(B,)``.

        ``<unk>``, token 0, is never chosen, because it is no text.
        """
        allowed = probs[:, 1:]
        if self.temperature == 0:
            return np.asarray(allowed.argmax(1) + 1)
        logs = log(allowed)
        # Relative to the largest, so that no temperature, however low, makes a number too large.
        with np.errstate(over="ignore"):
            weights = exp((logs - logs.max(1, keepdims=True)) / max(self.temperature, _COLDEST))
        if self.top_k is not None and self.top_k < weights.shape[1]:
            weights[weights < np.partition(weights, -self.top_k, axis=1)[:, -self.top_k, None]] = 0
        if self.top_p is not None:
            order = np.argsort(-weights, axis=1, kind="stable")
            ordered = np.take_along_axis(weights, order, 1)
            # A token stays while those before it have less than top_p: the first one always does.
            before = np.cumsum(ordered, 1) - ordered
            ordered[before >= self.top_p * ordered.sum(1, keepdims=True)] = 0
            np.put_along_axis(weights, order, ordered, 1)
        cumulative = np.cumsum(weights, 1)
        total = cumulative[:, -1:]
        drawn = np.minimum(rng.random((len(weights), 1)) * total, np.nextafter(total, 0))
        return np.asarray((cumulative > drawn).argmax(1) + 1)
